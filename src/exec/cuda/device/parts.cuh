#pragma once

#include "exec/cuda/device/types.h"

// Partial results that blocks of a kernel exchange as data without flags: memory contains kAbsent
// where no value has been stored, and no stored value equals it.
namespace harpe::device {

inline constexpr std::uint32_t kAbsent = 0xffffffffU;  // a NaN

HP_DEVICE void store_part(uint4* to, std::uint32_t a, std::uint32_t b, std::uint32_t c,
                          std::uint32_t d) {
  asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(a), "r"(b),
               "r"(c), "r"(d)
               : "memory");
}

HP_DEVICE uint4 load_part(const uint4* from) {
  uint4 part;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(part.x), "=r"(part.y), "=r"(part.z), "=r"(part.w)
               : "l"(from)
               : "memory");
  return part;
}

HP_DEVICE bool is_absent(const uint4& part) {
  return part.x == kAbsent || part.y == kAbsent || part.z == kAbsent || part.w == kAbsent;
}

// The bits to store; a NaN equal to kAbsent becomes another NaN.
HP_DEVICE std::uint32_t present(float value) {
  const std::uint32_t bits = __float_as_uint(value);
  return bits == kAbsent ? kAbsent - 1 : bits;
}

}  // namespace harpe::device
