#include "exec/cuda/kernels/backward/prepared_backward.h"

namespace harpe::cuda {

Checked<std::unique_ptr<PreparedKernel>> prepare_backward(const KernelLaunch& launch,
                                                          const LaunchTools& tools) {
  const auto* const spec = find_spec<BackwardSpec>(launch);
  if (spec == nullptr) return std::unique_ptr<PreparedKernel>();
  HP_TRY(PreparedBackward backward,
         PreparedBackward::make(tools.kernels, *spec, tools.multiprocessors));
  return std::unique_ptr<PreparedKernel>(std::make_unique<PreparedBackward>(std::move(backward)));
}

}  // namespace harpe::cuda
