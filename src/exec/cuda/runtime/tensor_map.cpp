#include "exec/cuda/runtime/tensor_map.h"

#include <array>
#include <cstring>

namespace harpe::cuda {
namespace {

CUtensorMapDataType data_type(device::Element element) {
  switch (element) {
    case device::Element::BF16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case device::Element::F16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case device::Element::F32:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  }
  return CU_TENSOR_MAP_DATA_TYPE_UINT8;
}

}  // namespace

Checked<device::TensorMap> encode_map(const DriverApi& driver, const TensorMapSpec& spec) {
  const auto rank = static_cast<std::size_t>(spec.dimensions);
  HP_REQUIRE_OK(check_aligned("a tensor", spec.address,
                              std::span(spec.strides).subspan(1, rank - 1), spec.element));
  std::array<cuuint64_t, 4> sizes{};
  std::array<cuuint64_t, 4> strides{};
  std::array<cuuint32_t, 4> box{};
  constexpr std::array<cuuint32_t, 4> kDense{1, 1, 1, 1};
  for (std::size_t at = 0; at < rank; ++at) {
    sizes[at] = static_cast<cuuint64_t>(spec.sizes[at]);
    box[at] = static_cast<cuuint32_t>(spec.box[at]);
    strides[at] = static_cast<cuuint64_t>(spec.strides[at] * device::bytes_of(spec.element));
  }
  const CUtensorMapSwizzle swizzle = spec.box[0] * device::bytes_of(spec.element) == 64
                                         ? CU_TENSOR_MAP_SWIZZLE_64B
                                         : CU_TENSOR_MAP_SWIZZLE_128B;
  CUtensorMap map{};
  HP_REQUIRE_OK(driver_call(
      driver, "cuTensorMapEncodeTiled",
      driver.cuTensorMapEncodeTiled(&map, data_type(spec.element), static_cast<cuuint32_t>(rank),
                                    reinterpret_cast<void*>(spec.address), sizes.data(),
                                    strides.data() + 1, box.data(), kDense.data(),
                                    CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                    spec.l2_bytes == 128 ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B
                                                         : CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)));
  device::TensorMap copy;
  static_assert(sizeof copy == sizeof map);
  std::memcpy(&copy, &map, sizeof copy);
  return copy;
}

}  // namespace harpe::cuda
