#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/cuda/jit/kernel_library.h"
#include "exec/cuda/library/cublaslt.h"
#include "exec/cuda/library/cudnn.h"
#include "exec/cuda/library/nccl.h"
#include "exec/cuda/runtime/device_memory.h"

namespace harpe::library {

struct TeamRequest {
  int ranks = 1;
  std::optional<std::string> kernel_cache;
  std::optional<std::string> nvrtc;
  std::vector<std::string> cuda_folders;
  std::vector<std::string> library_folders;  // as in Search
};

// One rank and its GPU's resources; one thread enqueues all of its work.
struct Member {
  Member(int number, cuda::Device gpu, cuda::Stream order)
      : rank(number), device(std::move(gpu)), stream(std::move(order)) {}

  int rank;
  cuda::Device device;
  cuda::Stream stream;
  std::unique_ptr<cuda::KernelLibrary> kernels;
  std::optional<cuda::DeviceMemory> workspace;  // of GEMMs
  std::optional<Result<CublasLt, Missing>> products;
  std::optional<Result<Cudnn, Missing>> attention;
  std::optional<NcclRank> nccl;
};

// The ranks of baselines, GPU i for rank i, with the libraries that are present.
class Team {
 public:
  // Errors: G070 fewer GPUs than ranks; those of Device::open, Nvrtc::open and Nccl.
  [[nodiscard]] static Checked<std::shared_ptr<Team>> open(const TeamRequest& request);

  [[nodiscard]] int ranks() const { return static_cast<int>(members_.size()); }
  [[nodiscard]] Member& member(int rank) { return members_[static_cast<std::size_t>(rank)]; }
  // "NCCL 2.28.9, cuBLASLt 13.0.2, no cuDNN (…)"
  [[nodiscard]] std::string describe() const;
  [[nodiscard]] const std::string& nccl_version() const { return nccl_version_; }

  // Runs body(member) for every rank in parallel, each in a thread for which its GPU is current.
  // Errors: G005; the error of the lowest failed rank.
  [[nodiscard]] Checked<Ok> for_all(const std::function<Checked<Ok>(Member&)>& body);

 private:
  Team() = default;

  std::vector<Member> members_;
  std::string nccl_version_;
};

}  // namespace harpe::library
