#include "exec/cuda/prepared_gradient.h"

#include <array>

#include "exec/cuda/gradient_variants.h"

namespace harpe::cuda {

Checked<PreparedGradient> PreparedGradient::make(KernelLibrary& library, const GradientSpec& spec,
                                                 std::optional<int> multiprocessors) {
  HP_REQUIRE_OK(check(spec));
  const Device& device = library.device();
  if (auto current = device.make_current(); !current.ok()) return to_diag(current.error());
  const GradientPlan plan =
      plan_gradient(spec, multiprocessors.value_or(device.facts().multiprocessors));
  HP_TRY(const LoadedKernel* kernel, library.load(gradient_variant(plan.config)));
  HP_TRY(DeviceMemory words, DeviceMemory::zeros(device, 1 + plan.query_turns + plan.key_turns));
  PreparedGradient gradient(library, *kernel, std::move(words));
  device::GradientArgs& args = gradient.args_;
  args = plan.args;
  const std::array<device::TensorMap*, 5> maps = {&args.q, &args.k, &args.v, &args.d_o, &args.dq};
  for (std::size_t i = 0; i < maps.size(); ++i) {
    HP_TRY(*maps[i], encode_map(device.driver(), plan.maps[i]));
  }
  gradient.shape_.grid[0] = static_cast<std::uint32_t>(plan.blocks);
  args.ticket = pointer_to<std::uint32_t>(gradient.words_.address());
  args.query_turns = args.ticket + 1;
  args.key_turns = args.query_turns + plan.query_turns;
  return gradient;
}

Result<Ok, CudaError> PreparedGradient::launch(CUstream stream) const {
  return cuda::launch(library_->device().driver(), *kernel_, shape_, stream, args_);
}

}  // namespace harpe::cuda
