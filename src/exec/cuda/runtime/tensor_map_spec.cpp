#include "exec/cuda/runtime/tensor_map_spec.h"

#include <string>

namespace harpe::cuda {

Checked<Ok> check_aligned(std::string_view name, DeviceAddress address,
                          std::span<const std::int64_t> strides, device::Element element) {
  constexpr std::int64_t kAlignment = 16;
  if (address % kAlignment != 0) {
    return make_diag(DiagCode::G041,
                     {{"what", "address of " + std::string(name)}, {"bytes", address}});
  }
  for (const std::int64_t stride : strides) {
    const std::int64_t bytes = stride * device::bytes_of(element);
    if (bytes % kAlignment == 0) continue;
    return make_diag(DiagCode::G041,
                     {{"what", "stride of " + std::string(name)}, {"bytes", bytes}});
  }
  return Ok{};
}

}  // namespace harpe::cuda
