#include "exec/cuda/kernels/attention/prepared_decode.h"

#include <utility>

#include "exec/cuda/kernels/attention/decode_variants.h"
#include "exec/cuda/runtime/tensor_map.h"

namespace harpe::cuda {

Checked<PreparedDecode> PreparedDecode::make(KernelLibrary& library, const AttentionSpec& spec,
                                             std::shared_ptr<StreamSums> sums) {
  constexpr std::int64_t kFloat = 4;
  const Device& device = library.device();
  HP_REQUIRE_OK(check(spec, device.facts().multiprocessors));
  if (auto current = device.make_current(); !current.ok()) return to_diag(current.error());
  const device::DecodeConfig config = decode_config(spec);
  HP_TRY(const LoadedKernel* kernel, library.load(decode_variant(config)));
  PreparedDecode decode(library, *kernel);
  DecodePlan plan = plan_decode(spec);
  HP_TRY(plan.args.queries, encode_map(device.driver(), plan.maps[0]));
  HP_TRY(plan.args.keys, encode_map(device.driver(), plan.maps[1]));
  HP_TRY(plan.args.values, encode_map(device.driver(), plan.maps[2]));
  const bool is_own = sums == nullptr;
  if (is_own) sums = std::make_shared<StreamSums>();
  sums->reserve_parts(spec.shares * device::state_floats(config.head_dim, config.columns) * kFloat);
  if (is_own) HP_REQUIRE_OK(sums->allocate(device));
  decode.sums_ = std::move(sums);
  decode.args_ = plan.args;
  decode.shape_ = {.grid = {static_cast<std::uint32_t>(spec.shares), 1, 1}, .begins_early = true};
  return decode;
}

Result<Ok, CudaError> PreparedDecode::launch(CUstream stream) const {
  device::DecodeArgs args = args_;
  args.states = reinterpret_cast<float*>(sums_->parts());
  return cuda::launch(library_->device().driver(), *kernel_, shape_, stream, args);
}

}  // namespace harpe::cuda
