#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exec/cuda/library/nccl_call.h"
#include "exec/cuda/library/places.h"

namespace harpe::library {

using NcclHandle = struct ncclComm*;

// The common id of ranks in several processes that join one communicator (ncclUniqueId).
struct NcclId {
  std::array<char, 128> bytes{};
};

// NCCL's functions. Their enumerations are passed as int, their type in C.
struct NcclFunctions {
#define HP_NCCL(FUNCTION, PARAMETERS) int(*FUNCTION) PARAMETERS = nullptr;
#include "exec/cuda/library/nccl.def"
#undef HP_NCCL
  const char* (*ncclGetErrorString)(int status) = nullptr;
};

// All results of NCCL's calls are checked here. Errors: G080.
[[nodiscard]] Checked<Ok> nccl_call(const NcclFunctions& functions, std::string_view call,
                                    int status);

// One rank's end of a communicator. Calls only enqueue on a stream of the rank's GPU, which must be
// current for the calling thread. Every rank makes the same calls in the same order, each rank in
// its own thread. Streams may be captured.
class NcclRank {
 public:
  NcclRank(std::shared_ptr<const NcclFunctions> functions, NcclHandle handle)
      : functions_(std::move(functions)), handle_(handle) {}
  NcclRank(NcclRank&& other) noexcept;
  NcclRank& operator=(NcclRank&&) = delete;
  ~NcclRank();

  // Concatenates `from` of all ranks, in order, in `to`. Errors, here and below: G080.
  [[nodiscard]] Checked<Ok> all_gather(const Elements& from, cuda::DeviceAddress to,
                                       CUstream stream) const;
  // Sums; `to` is this rank's part of the sums, `from` has the length of all parts.
  [[nodiscard]] Checked<Ok> reduce_scatter(cuda::DeviceAddress from, const Elements& to,
                                           CUstream stream) const;
  // Sums, in place.
  [[nodiscard]] Checked<Ok> all_reduce(const Elements& data, CUstream stream) const;
  // Sends part i of `from` to rank i, and receives part i of `to` from there; `part` elements each.
  [[nodiscard]] Checked<Ok> exchange(const Elements& part, cuda::DeviceAddress to, int ranks,
                                     CUstream stream) const;
  // Sends and receives each message. Messages between two ranks match in order, with equal lengths.
  [[nodiscard]] Checked<Ok> exchange(const std::vector<Message>& sends,
                                     const std::vector<Message>& receives, CUstream stream) const;
  // Runs the calls of this rank in `calls` as one operation.
  [[nodiscard]] Checked<Ok> group(const std::function<Checked<Ok>()>& calls) const;

  // Ends what runs on the communicator, now or later in graphs that contain it, without its peers.
  // Callable from any thread, once; replaces the destructor's end. Returns when those graphs are
  // destroyed.
  void abort();

 private:
  [[nodiscard]] Checked<Ok> call(std::string_view name, int status) const {
    return nccl_call(*functions_, name, status);
  }

  std::shared_ptr<const NcclFunctions> functions_;
  NcclHandle handle_ = nullptr;
  std::atomic<bool> is_aborted_ = false;
};

// Enqueues a rank's part. Errors: G080.
[[nodiscard]] Checked<Ok> order(const NcclCall& call, CUstream stream);

class Nccl {
 public:
  // Errors: G002, G003, G080.
  [[nodiscard]] static Checked<Nccl> open(const Search& search);

  // For tests: with the given functions in place of NCCL's.
  Nccl(std::shared_ptr<const NcclFunctions> functions, std::string version, std::string path)
      : functions_(std::move(functions)), version_(std::move(version)), path_(std::move(path)) {}

  // A communicator of the first GPUs, one rank each. Changes the current GPU. Errors: G080.
  [[nodiscard]] Checked<std::vector<NcclRank>> connect(int ranks) const;
  // The same for ranks that each call `join`, in threads or processes of their own, with a common
  // id; the rank's GPU must be current. Returns once all have joined. Errors: G080.
  [[nodiscard]] Checked<NcclId> make_id() const;
  [[nodiscard]] Checked<NcclRank> join(const NcclId& id, int rank, int ranks) const;

  [[nodiscard]] const std::string& version() const { return version_; }  // "2.28.9"
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::shared_ptr<const NcclFunctions> functions_;
  std::string version_;
  std::string path_;
};

}  // namespace harpe::library
