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
  HP_TRY(plan.args.keys, encode_map(device.driver(), plan.maps[0]));
  HP_TRY(plan.args.values, encode_map(device.driver(), plan.maps[1]));
  const bool is_own = sums == nullptr;
  if (is_own) sums = std::make_shared<StreamSums>();
  sums->reserve_parts(spec.shares * device::state_floats(config) * kFloat);
  if (config.exchanges) {
    sums->reserve(plan.pairs * device::kept_floats(config) * kFloat);
  }
  if (is_own) HP_REQUIRE_OK(sums->allocate(device));
  decode.sums_ = std::move(sums);
  decode.args_ = {.decode = plan.args, .exchange = plan.exchange, .bounds = spec.bounds};
  decode.exchanges_ = config.exchanges;
  HP_REQUIRE_OK(decode.place_fused_stores(device, spec));
  decode.place_bounds(spec);
  decode.shape_ = {.grid = {static_cast<std::uint32_t>(spec.shares), 1, 1}, .begins_early = true};
  return decode;
}

Result<Ok, CudaError> PreparedDecode::launch(CUstream stream) const {
  const DriverApi& driver = library_->device().driver();
  device::DecodeExchangeArgs args = args_;
  args.decode.states = reinterpret_cast<float*>(sums_->parts());
  if (!exchanges_) return cuda::launch(driver, *kernel_, shape_, stream, args.decode);
  args.exchange.kept = reinterpret_cast<float*>(sums_->address());
  return cuda::launch(driver, *kernel_, shape_, stream, args);
}

Checked<Ok> PreparedDecode::place_fused_stores(const Device& device, const AttentionSpec& spec) {
  if (spec.fused_stores.empty()) return Ok{};
  const std::vector<std::uint32_t> counts = count_stores(spec);
  HP_TRY(stored_, DeviceMemory::zeros(device, static_cast<std::int64_t>(counts.size())));
  for (std::size_t i = 0; i < spec.results.size(); ++i) {
    if (spec.results[i].fused_store < 0) continue;
    const auto store = static_cast<std::size_t>(spec.results[i].fused_store);
    device::DecodeResult& result = args_.exchange.results[i];
    result.done = reinterpret_cast<std::uint32_t*>(stored_->address()) + store;
    result.arrivals = counts[store];
    result.raise = spec.fused_stores[store];
  }
  return Ok{};
}

void PreparedDecode::place_bounds(const AttentionSpec& spec) {
  if (spec.bounds.ended == nullptr) return;
  HP_CHECK(exchanges_, "launch plans have other kernels stand between executions");
  args_.bounds.arrivals = static_cast<std::uint32_t>(spec.shares);
  args_.exchange.wait.ahead = 1;
}

}  // namespace harpe::cuda
