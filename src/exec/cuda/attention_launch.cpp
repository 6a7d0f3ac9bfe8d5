#include "exec/cuda/attention_launch.h"

#include <cstring>

#include "exec/cuda/attention_variants.h"

namespace harpe::cuda {

using device::AttentionConfig;
using device::Element;

namespace {

Checked<Ok> encode(const DriverApi& driver, const TensorBoxes& boxes, device::TensorMap& map) {
  constexpr std::array<cuuint32_t, 4> kDense = {1, 1, 1, 1};
  CUtensorMap encoded;
  static_assert(sizeof(encoded) == sizeof(map));
  HP_REQUIRE_OK(
      driver_call(driver, "cuTensorMapEncodeTiled",
                  driver.cuTensorMapEncodeTiled(
                      &encoded,
                      boxes.element == Element::F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                                    : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                      4, reinterpret_cast<void*>(boxes.address), boxes.sizes.data(),
                      boxes.stride_bytes.data(), boxes.box.data(), kDense.data(),
                      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)));
  std::memcpy(&map, &encoded, sizeof(map));
  return Ok{};
}

}  // namespace

Checked<AttentionRun> prepare_attention(KernelLibrary& library, const AttentionSpec& spec,
                                        const AttentionConfig& config) {
  HP_REQUIRE_OK(check(spec));
  HP_TRY(const LoadedKernel* const kernel, library.load(attention_variant(config)));
  const Device& device = library.device();
  AttentionPlan plan = plan_attention(spec, config, device.facts().multiprocessors);
  for (std::size_t i = 0; i < plan.maps.size(); ++i) {
    HP_REQUIRE_OK(encode(device.driver(), plan.maps[i], map_of(plan.args, i)));
  }
  AttentionRun run;
  run.kernel = kernel;
  run.args = std::make_shared<const device::AttentionArgs>(plan.args);
  run.shape.grid[0] = static_cast<std::uint32_t>(plan.blocks);
  return run;
}

Checked<AttentionRun> prepare_attention(KernelLibrary& library, const AttentionSpec& spec) {
  HP_REQUIRE_OK(check(spec));
  return prepare_attention(library, spec, choose_attention(spec));
}

Result<Ok, CudaError> launch(const DriverApi& driver, const AttentionRun& run, CUstream stream) {
  return launch(driver, *run.kernel, run.shape, stream, *run.args);
}

}  // namespace harpe::cuda
