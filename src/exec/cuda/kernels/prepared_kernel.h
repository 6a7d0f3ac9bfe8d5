#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "exec/cuda/jit/kernel_library.h"
#include "exec/cuda/kernels/launch_spec.h"
#include "exec/cuda/library/leaves.h"

namespace harpe::cuda {

class StreamSums;

// What launches are made ready with.
struct LaunchTools {
  KernelLibrary& kernels;  // outlives them
  int multiprocessors;     // that may work at once
  // Where there are launches of libraries: outlives them too.
  library::Leaves* leaves = nullptr;
  library::LeafPlace place = {};
  // Of the stream that they are for; null: each GEMM has its own.
  std::shared_ptr<StreamSums> sums = nullptr;
  // That the launch plan names; none: chosen for the multiprocessors.
  std::optional<std::string_view> variant = std::nullopt;
};

// A launch with all that it needs on the GPU, to be ordered any number of times.
class PreparedKernel {
 public:
  virtual ~PreparedKernel() = default;
  // Allocates nothing. Requires: the GPU is current for the calling thread.
  [[nodiscard]] virtual Result<Ok, CudaError> launch(CUstream stream) const = 0;
  // Whether other ranks must order theirs too.
  [[nodiscard]] virtual bool meets_others() const { return false; }
};

// Of the folder that the launch is of. Errors: those of loading kernels and of libraries; G005.
[[nodiscard]] Checked<std::unique_ptr<PreparedKernel>> prepare(const KernelLaunch& launch,
                                                               const LaunchTools& tools);

}  // namespace harpe::cuda
