#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "exec/cuda/executor/cuda_executor.h"
#include "exec/cuda/group/join_group.h"
#include "exec/cuda/jit/kernel_library.h"
#include "exec/cuda/runtime/peer_memory.h"
#include "exec/described_target.h"
#include "exec/group/agreed_pieces.h"
#include "exec/group/group_board.h"
#include "exec/group/tensor_heap.h"

namespace harpe::cuda {

class CudaRankExecutable;

// What the executables of one rank share.
struct GroupState {
  GroupRequest request;
  CudaGroupOptions given;
  CudaOptions options;  // the same, for what prepares a rank
  Device device;
  std::shared_ptr<KernelLibrary> kernels;
  DescribedTarget target;  // equal on all ranks
  Event last;              // end of what was launched last
  Event other;             // of what another stream than a launch's holds
  CUstream last_stream = nullptr;
  std::int64_t launches = 0;
  std::shared_ptr<Arena> arena = nullptr;      // for plans that are made from now on
  std::shared_ptr<Arena> tensors = nullptr;    // for tensors of callers; none: no bytes
  std::shared_ptr<TensorHeap> heap = nullptr;  // what is taken of this rank's
  // Of what is behind those in `tensors`, for results; none: no bytes.
  std::shared_ptr<AgreedPieces> pieces = nullptr;
  std::vector<CUstream> piece_streams = {};  // by piece: where it was used last
  // Of the next launch.
  std::shared_ptr<std::byte> taken = nullptr;
  std::int64_t taken_bytes = 0;
  // None where ranks do not see each other's processes; then only waits find different launches.
  std::optional<GroupBoard> board = std::nullopt;
  std::vector<CudaRankExecutable*> live = {};           // executables
  std::optional<LaunchFailure> failure = std::nullopt;  // that ended their executions

  [[nodiscard]] int rank() const { return request.exchange->rank(); }
  [[nodiscard]] int ranks() const { return request.exchange->ranks(); }
  [[nodiscard]] transport::Exchange& exchange() const { return *request.exchange; }

  // What one of the ranks could not do is an error of all.
  template <class T>
  [[nodiscard]] Checked<T> agreed(Checked<T> own) const {
    HP_REQUIRE_OK(
        transport::agree(exchange(), own.ok() ? std::nullopt : std::optional<Diag>(own.error())));
    return own;
  }

  // Looks at what GPUs have left in the host's memory since. The host waits for nothing.
  [[nodiscard]] const std::optional<LaunchFailure>& check();
  // This rank launches, or captures, the executable of that number, with so placed tensors. What is
  // not the same on another rank that has come so far ends all executions.
  [[nodiscard]] Result<Ok, LaunchFailure> begin(std::uint32_t executable, std::uint64_t places);
  // The stream's next work comes behind what was launched last, wherever that was.
  [[nodiscard]] Result<Ok, CudaError> order_behind_last(CUstream stream) const;
  [[nodiscard]] Result<Ok, CudaError> note_last(CUstream stream);
  // So many bytes of `pieces` for the next launch, at the same place on all ranks; null: there are
  // none. Requires: pieces. Errors: what ended the group's executions; G005.
  [[nodiscard]] Result<std::shared_ptr<std::byte>, LaunchFailure> take(std::int64_t bytes,
                                                                       CUstream stream);
  // Waits on the host for all that was launched.
  [[nodiscard]] Result<Ok, CudaError> wait_for_last() const;

 private:
  // The stream's next work comes behind what another one holds.
  [[nodiscard]] Result<Ok, CudaError> order_behind(CUstream before, CUstream stream) const;
  // Ranks differ: no wait for another rank goes on.
  void give_up(const Diag& mismatch);
  // A failure of this rank's executions, whose waits have ended.
  [[nodiscard]] std::optional<LaunchFailure> find_failure() const;
};

}  // namespace harpe::cuda
