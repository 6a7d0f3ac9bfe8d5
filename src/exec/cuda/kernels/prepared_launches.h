#pragma once

#include <memory>
#include <vector>

#include "exec/cuda/kernels/prepared_kernel.h"

namespace harpe::cuda {

// Launches in order, prepared once and enqueued any number of times, into a stream or a captured
// graph. Enqueueing allocates nothing.
class Launches {
 public:
  // Requires: the spec's check is ok for the SMs that the launch plan leaves it. Errors: those of
  // `prepare`.
  [[nodiscard]] Checked<Ok> add(const LaunchTools& tools, const LaunchSpec& spec);

  // Enqueues all launches. Requires: the GPU is current for the calling thread.
  [[nodiscard]] Result<Ok, CudaError> enqueue(CUstream stream) const;

  [[nodiscard]] std::size_t size() const { return kernels_.size(); }
  // Whether other ranks must enqueue their part of any of them too.
  [[nodiscard]] bool meets_others() const;

 private:
  std::vector<std::unique_ptr<PreparedKernel>> kernels_;
};

}  // namespace harpe::cuda
