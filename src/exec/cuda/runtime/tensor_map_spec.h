#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "exec/cuda/device/types.h"
#include "support/diag.h"

namespace harpe::cuda {

using DeviceAddress = std::uint64_t;

// An address as a pointer for kernel arguments.
template <class T>
[[nodiscard]] T* pointer_to(DeviceAddress address) {
  return reinterpret_cast<T*>(address);
}

// A tensor in GPU memory for the bulk copy engine: up to four dimensions, the innermost first and
// contiguous. Its boxes go to shared memory with rows of at most 128 bytes, swizzled by 64
// bytes if a row has 64, else by 128.
struct TensorMapSpec {
  DeviceAddress address = 0;  // a multiple of 16
  device::Element element = device::Element::BF16;
  int dimensions = 2;
  std::array<std::int64_t, 4> sizes{1, 1, 1, 1};
  std::array<std::int64_t, 4> strides{1, 1, 1, 1};  // elements; bytes are multiples of 16
  std::array<int, 4> box{1, 1, 1, 1};
  int l2_bytes = 256;  // bytes that the L2 cache fetches at once: 128 or 256
};

// Errors: G041 the address, or a stride (in elements), is no multiple of 16 bytes. `name` is the
// user's name for the tensor.
[[nodiscard]] Checked<Ok> check_aligned(std::string_view name, DeviceAddress address,
                                        std::span<const std::int64_t> strides,
                                        device::Element element);

}  // namespace harpe::cuda
