#pragma once

#include "bench/cuda/device/args.h"

namespace harpe::bench {

__device__ inline double load_element(const void* base, std::int64_t index, Element element) {
  if (element == Element::F32) return static_cast<const float*>(base)[index];
  const std::uint16_t bits = static_cast<const std::uint16_t*>(base)[index];
  if (element == Element::BF16) {
    return __uint_as_float(static_cast<std::uint32_t>(bits) << 16);
  }
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

// Rounds to nearest, ties to even.
__device__ inline void store_element(void* base, std::int64_t index, Element element, float value) {
  if (element == Element::F32) {
    static_cast<float*>(base)[index] = value;
    return;
  }
  std::uint16_t bits;
  if (element == Element::BF16) {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  } else {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  }
  static_cast<std::uint16_t*>(base)[index] = bits;
}

// Half the relative spacing of the values: the largest change of one rounding to nearest.
__device__ inline double unit_roundoff(Element element) {
  if (element == Element::BF16) return 0x1p-8;
  return element == Element::F16 ? 0x1p-11 : 0x1p-24;
}

// The error of one f32 addition inside the matrix unit, which truncates: a spacing of f32 for the
// result, and as much for the terms aligned to the largest.
constexpr double kMatrixRoundoff = 0x1p-22;

// For terms of random sign whose squares sum to q, a partial sum exceeds kTail sqrt(q) with a
// probability below 4 exp(-kTail^2 / 2) = 5e-14 (Hoeffding, Levy).
constexpr double kTail = 8;

__device__ inline std::int64_t sampled_row(const RowSample& sample, std::int64_t index) {
  return (sample.first + index * sample.step) % sample.all;
}

}  // namespace harpe::bench
