#pragma once

#include <cmath>
#include <cstdint>

namespace harpe {

// One register of numbers on machines with 64-byte vectors; elsewhere compilers split it.
typedef float F32Lanes __attribute__((vector_size(64)));
typedef double F64Lanes __attribute__((vector_size(64)));
typedef std::int32_t I32Lanes __attribute__((vector_size(64)));

// x = e^x for x <= 88, with an error below 1.1 units in the last place; 0 below -87.68, where the
// result leaves the normal range; NaN stays NaN. e^x = 2^n e^r with n an integer and |r| <= log(2)
// / 2. log(2) is split into two parts so that r is exact; e^r is a polynomial with relative error
// 0.07 * 2^-24.
[[gnu::always_inline]] inline void exponentiate(F32Lanes& x) {
  constexpr float kShift = 0x1.8p23F;  // adding it leaves round(n) in the low bits
  const F32Lanes lowest = F32Lanes{} - 88.0F;
  const F32Lanes clamped = x < lowest ? lowest : x;  // keeps NaN
  const F32Lanes shifted = clamped * 0x1.715476p0F + kShift;
  const F32Lanes n = shifted - kShift;
  const F32Lanes r = (clamped - n * 0x1.62e4p-1F) - n * 0x1.7f7d1cp-20F;
  F32Lanes p = r * 0x1.6a2272p-10F + 0x1.123b58p-7F;
  p = p * r + 0x1.5558fap-5F;
  p = p * r + 0x1.555490p-3F;
  p = p * r + 0x1.fffffcp-2F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  // n + 127 as the exponent field; -127 yields 0.
  const I32Lanes power = (__builtin_bit_cast(I32Lanes, shifted) - 0x4b400000 + 127) << 23;
  x = p * __builtin_bit_cast(F32Lanes, power);
}

[[gnu::always_inline]] inline void exponentiate(F64Lanes& x) {
  for (int lane = 0; lane < 8; ++lane) x[lane] = std::exp(x[lane]);
}

}  // namespace harpe
