#include "exec/cuda/kernels/backward/prepared_backward.h"

#include <array>

#include "exec/cuda/kernels/backward/backward_variants.h"

namespace harpe::cuda {

Checked<PreparedBackward> PreparedBackward::make(KernelLibrary& library, const BackwardSpec& spec,
                                                 std::optional<int> multiprocessors) {
  HP_REQUIRE_OK(check(spec));
  const Device& device = library.device();
  if (auto current = device.make_current(); !current.ok()) return to_diag(current.error());
  const BackwardPlan plan =
      plan_backward(spec, multiprocessors.value_or(device.facts().multiprocessors));
  HP_TRY(const LoadedKernel* kernel, library.load(backward_variant(plan.config)));
  HP_TRY(DeviceMemory words, DeviceMemory::zeros(device, 1 + plan.query_turns + plan.key_turns));
  PreparedBackward backward(library, *kernel, std::move(words));
  device::BackwardArgs& args = backward.args_;
  args = plan.args;
  const std::array<device::TensorMap*, 5> maps = {&args.q, &args.k, &args.v, &args.d_o, &args.dq};
  for (std::size_t i = 0; i < maps.size(); ++i) {
    HP_TRY(*maps[i], encode_map(device.driver(), plan.maps[i]));
  }
  backward.shape_.grid[0] = static_cast<std::uint32_t>(plan.blocks);
  args.ticket = pointer_to<std::uint32_t>(backward.words_.address());
  args.query_turns = args.ticket + 1;
  args.key_turns = args.query_turns + plan.query_turns;
  return backward;
}

Result<Ok, CudaError> PreparedBackward::launch(CUstream stream) const {
  return cuda::launch(library_->device().driver(), *kernel_, shape_, stream, args_);
}

}  // namespace harpe::cuda
