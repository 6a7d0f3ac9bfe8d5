#pragma once

#include <memory>
#include <vector>

#include "exec/cuda/kernels/prepared_kernel.h"

namespace harpe::cuda {

// Launches in order, made once and enqueued any number of times, into a stream or a graph that is
// captured. Enqueueing allocates nothing.
class Launches {
 public:
  // Requires: the spec's check is ok for the multiprocessors that the launch plan leaves it.
  // Errors: those of making it ready.
  [[nodiscard]] Checked<Ok> add(const LaunchTools& tools, const LaunchSpec& spec);

  // Orders all of it. Requires: the GPU is current for the calling thread.
  [[nodiscard]] Result<Ok, CudaError> enqueue(CUstream stream) const;

  [[nodiscard]] std::size_t size() const { return kernels_.size(); }
  // Whether other ranks must order theirs too.
  [[nodiscard]] bool meets_others() const;

 private:
  std::vector<std::unique_ptr<PreparedKernel>> kernels_;
};

}  // namespace harpe::cuda
