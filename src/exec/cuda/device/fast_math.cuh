#pragma once

#include "exec/cuda/device/types.h"

// Functions that are one instruction, with errors of a few units in the last place.
namespace harpe::device {

// 2^x; results below the least normal number are 0.
HP_DEVICE float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

HP_DEVICE float log2_fast(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

HP_DEVICE float reciprocal_fast(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// The f32 of an f16: exact, but a NaN may lose its payload.
HP_DEVICE float widen_f16_fast(std::uint32_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<std::uint16_t>(bits)));
  return value;
}

}  // namespace harpe::device
