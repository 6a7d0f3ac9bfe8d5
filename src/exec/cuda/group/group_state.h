#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "exec/cuda/executor/cuda_executor.h"
#include "exec/cuda/group/join_group.h"
#include "exec/cuda/jit/kernel_library.h"
#include "exec/cuda/runtime/graph.h"
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
  CudaOptions options;  // the same, for preparing a rank
  Device device;
  std::shared_ptr<KernelLibrary> kernels;
  DescribedTarget target;  // equal on all ranks
  Event last;              // the end of the last launch
  Event other;             // for the work of a stream without a launch
  CUstream last_stream = nullptr;
  std::int64_t launches = 0;
  std::shared_ptr<Arena> arena = nullptr;      // for plans made from now on
  std::shared_ptr<Arena> tensors = nullptr;    // for callers' tensors; null: no bytes
  std::shared_ptr<TensorHeap> heap = nullptr;  // allocator of this rank's part
  // For results, behind the heap's part of `tensors`; null: no bytes.
  std::shared_ptr<AgreedPieces> pieces = nullptr;
  struct LastUse {
    CUstream stream = nullptr;
    AgreedPieces::CaptureNumber capture = AgreedPieces::kNoCapture;
  };
  std::vector<LastUse> last_uses = {};  // by piece
  // Of captures in which this rank has taken pieces: the number, and the id of the last.
  AgreedPieces::CaptureNumber captures = AgreedPieces::kNoCapture;
  std::uint64_t last_capture = 0;
  bool others_come = true;  // in this capture no other rank has been waited for in vain
  // For the next launch.
  std::shared_ptr<std::byte> taken = nullptr;
  std::int64_t taken_bytes = 0;
  AgreedPieces::CaptureNumber taken_in = AgreedPieces::kNoCapture;
  // None if ranks cannot see each other's processes; then only expired waits reveal mismatched
  // launches.
  std::optional<GroupBoard> board = std::nullopt;
  std::vector<CudaRankExecutable*> live = {};           // executables
  std::optional<LaunchFailure> failure = std::nullopt;  // what ended their executions

  [[nodiscard]] int rank() const { return request.exchange->rank(); }
  [[nodiscard]] int ranks() const { return request.exchange->ranks(); }
  [[nodiscard]] transport::Exchange& exchange() const { return *request.exchange; }

  // An error of one rank is an error of all.
  template <class T>
  [[nodiscard]] Checked<T> agreed(Checked<T> own) const {
    HP_REQUIRE_OK(
        transport::agree(exchange(), own.ok() ? std::nullopt : std::optional<Diag>(own.error())));
    return own;
  }

  // Reads what GPUs have reported in host memory. The host waits for nothing.
  [[nodiscard]] const std::optional<LaunchFailure>& check();
  // This rank launches, or captures, this executable, with tensors at these places. A mismatch with
  // a rank that has come as far ends all executions.
  [[nodiscard]] Result<Ok, LaunchFailure> begin(std::uint32_t executable, std::uint64_t places);
  // Orders the stream's next work behind the last launch, in any stream.
  [[nodiscard]] Result<Ok, CudaError> order_behind_last(CUstream stream) const;
  [[nodiscard]] Result<Ok, CudaError> note_last(CUstream stream);
  // `bytes` of `pieces` for the next launch, at the same place on all ranks; null if there is no
  // room. Requires: pieces. Errors: what ended the group's executions; G005.
  [[nodiscard]] Result<std::shared_ptr<std::byte>, LaunchFailure> take(std::int64_t bytes,
                                                                       CUstream stream);
  // Waits on the host for all launches.
  [[nodiscard]] Result<Ok, CudaError> wait_for_last() const;

 private:
  [[nodiscard]] AgreedPieces::CaptureNumber number_of(const ForeignCapture& capture);
  // Nothing slows down a host that captures, so it may be many calls ahead, each with a piece of
  // its own. Waits a moment for other ranks, once in vain for each capture.
  void let_others_come();
  // Orders the stream's next work behind what used the piece; a captured graph then has it until
  // the graph's end.
  [[nodiscard]] Result<Ok, CudaError> prepare(const AgreedPieces::Piece& piece,
                                              const std::optional<ForeignCapture>& capture,
                                              CUstream stream);
  // Orders the stream's next work behind the work of another one.
  [[nodiscard]] Result<Ok, CudaError> order_behind(CUstream before, CUstream stream) const;
  // Ranks launch different executions: ends all waits for other ranks.
  void give_up(const Diag& mismatch);
  // A failure of this rank's executions, whose waits have ended.
  [[nodiscard]] std::optional<LaunchFailure> find_failure() const;
};

}  // namespace harpe::cuda
