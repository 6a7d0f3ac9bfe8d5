#include "exec/cuda/kernels/launch_spec.h"

#include "exec/cuda/kernels/kernel_binding.h"

namespace harpe::cuda {

Checked<LaunchSpec> KernelLaunch::bind(const KernelBinding& binding) const {
  return binding.refuse("no launch plan states its operands");
}

std::optional<LaunchSpec> KernelLaunch::join(std::span<const LaunchSpec> /*run*/,
                                             int /*multiprocessors*/) const {
  return std::nullopt;
}

}  // namespace harpe::cuda
