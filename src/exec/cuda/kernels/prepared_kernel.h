#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "exec/cuda/jit/kernel_library.h"
#include "exec/cuda/kernels/launch_spec.h"
#include "exec/cuda/library/leaves.h"

namespace harpe::cuda {

class StreamSums;

// What the preparation of launches needs.
struct LaunchTools {
  KernelLibrary& kernels;  // outlives the prepared kernels
  int multiprocessors;     // SMs that may be used
  // For launches of libraries; outlives the prepared kernels too.
  library::Leaves* leaves = nullptr;
  library::LeafPlace place = {};
  // The sums of the stream that the launches are for; null: each GEMM has its own.
  std::shared_ptr<StreamSums> sums = nullptr;
  // The variant that the launch plan names; none: chosen for the SMs.
  std::optional<std::string_view> variant = std::nullopt;
};

// A launch with everything that it needs on the GPU; it may be enqueued any number of times.
class PreparedKernel {
 public:
  virtual ~PreparedKernel() = default;
  // Enqueues it; allocates nothing. Requires: the GPU is current for the calling thread.
  [[nodiscard]] virtual Result<Ok, CudaError> launch(CUstream stream) const = 0;
  // Whether other ranks must enqueue their part too (a collective).
  [[nodiscard]] virtual bool meets_others() const { return false; }
};

// Prepares a launch of any folder. Errors: those of loading kernels and of libraries; G005.
[[nodiscard]] Checked<std::unique_ptr<PreparedKernel>> prepare(const KernelLaunch& launch,
                                                               const LaunchTools& tools);

}  // namespace harpe::cuda
