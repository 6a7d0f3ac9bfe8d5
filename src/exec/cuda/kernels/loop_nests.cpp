#include "exec/cuda/kernels/loop_nests.h"

namespace harpe::cuda {

DType dtype_of(device::Element element) {
  if (element == device::Element::F32) return DType::F32;
  return element == device::Element::F16 ? DType::F16 : DType::BF16;
}

std::optional<device::Element> half_of(DType dtype) {
  if (dtype == DType::BF16) return device::Element::BF16;
  if (dtype == DType::F16) return device::Element::F16;
  return std::nullopt;
}

std::optional<device::Number> number_of(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return device::Number::F32;
    case DType::F16:
      return device::Number::F16;
    case DType::BF16:
      return device::Number::BF16;
    case DType::F64:
      return device::Number::F64;
    default:
      return std::nullopt;
  }
}

}  // namespace harpe::cuda
