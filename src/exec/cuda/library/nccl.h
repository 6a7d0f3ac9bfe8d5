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

// What ranks in several processes have in common before they are one communicator's (ncclUniqueId).
struct NcclId {
  std::array<char, 128> bytes{};
};

// NCCL's functions. Their enumerations are handed over as the int that they are in C.
struct NcclFunctions {
#define HP_NCCL(FUNCTION, PARAMETERS) int(*FUNCTION) PARAMETERS = nullptr;
#include "exec/cuda/library/nccl.def"
#undef HP_NCCL
  const char* (*ncclGetErrorString)(int status) = nullptr;
};

// The one place that reads what NCCL's calls return. Errors: G080.
[[nodiscard]] Checked<Ok> nccl_call(const NcclFunctions& functions, std::string_view call,
                                    int status);

// One rank's end of a communicator. Calls only enqueue on a stream of the rank's GPU, which is
// current for the calling thread; every rank makes the same calls in the same order, each in a
// thread of its own. Streams may be captured.
class NcclRank {
 public:
  NcclRank(std::shared_ptr<const NcclFunctions> functions, NcclHandle handle)
      : functions_(std::move(functions)), handle_(handle) {}
  NcclRank(NcclRank&& other) noexcept;
  NcclRank& operator=(NcclRank&&) = delete;
  ~NcclRank();

  // `from` of every rank, one after the other, to `to`. Errors, here and below: G080.
  [[nodiscard]] Checked<Ok> all_gather(const Elements& from, cuda::DeviceAddress to,
                                       CUstream stream) const;
  // Sums; `to` is this rank's part of them, `from` is as long as all parts.
  [[nodiscard]] Checked<Ok> reduce_scatter(cuda::DeviceAddress from, const Elements& to,
                                           CUstream stream) const;
  // Sums, in place.
  [[nodiscard]] Checked<Ok> all_reduce(const Elements& data, CUstream stream) const;
  // Part i of `from` to rank i, and part i of `to` from there; `part` elements each.
  [[nodiscard]] Checked<Ok> exchange(const Elements& part, cuda::DeviceAddress to, int ranks,
                                     CUstream stream) const;
  // Each message from or to a peer. Of those between two ranks the first that is sent is the first
  // that is received, and as long.
  [[nodiscard]] Checked<Ok> exchange(const std::vector<Message>& sends,
                                     const std::vector<Message>& receives, CUstream stream) const;
  // What `calls` asks of this rank, as one operation.
  [[nodiscard]] Checked<Ok> group(const std::function<Checked<Ok>()>& calls) const;

  // Whatever runs on it, or will in graphs that hold it, ends without its peers; for any thread,
  // once, in place of the end that the destructor makes. Returns when those graphs are gone.
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

  // With the functions of something that stands for it.
  Nccl(std::shared_ptr<const NcclFunctions> functions, std::string version, std::string path)
      : functions_(std::move(functions)), version_(std::move(version)), path_(std::move(path)) {}

  // A communicator of the first GPUs, one rank each. Changes which GPU is current. Errors: G080.
  [[nodiscard]] Checked<std::vector<NcclRank>> connect(int ranks) const;
  // The same of ranks that each call for themselves, in threads or processes of their own, with one
  // id; the rank's GPU is current. Returns once all have come. Errors: G080.
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
