#include "exec/cuda/kernels/prepared_launches.h"

#include <algorithm>

namespace harpe::cuda {

bool Launches::meets_others() const {
  return std::ranges::any_of(kernels_, [](const auto& kernel) { return kernel->meets_others(); });
}

Checked<Ok> Launches::add(const LaunchTools& tools, const LaunchSpec& spec) {
  HP_TRY(std::unique_ptr<PreparedKernel> kernel, prepare(*spec, tools));
  kernels_.push_back(std::move(kernel));
  return Ok{};
}

Result<Ok, CudaError> Launches::enqueue(CUstream stream) const {
  for (const auto& kernel : kernels_) HP_REQUIRE_OK(kernel->launch(stream));
  return Ok{};
}

}  // namespace harpe::cuda
