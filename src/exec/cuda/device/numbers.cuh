#pragma once

#include "exec/cuda/device/loop_nest.h"

// Numbers of every floating type, widened and rounded exactly as on the host (ir/rounding.h): to
// nearest even, NaN preserved.
namespace harpe::device {

HP_DEVICE float widen_bf16(std::uint32_t bits) { return __uint_as_float(bits << 16); }

HP_DEVICE std::uint32_t narrow_bf16(float value) {
  const std::uint32_t bits = __float_as_uint(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x40U;
  return (bits & 0x7fffffffU) > 0x7f800000U ? quiet : rounded;
}

HP_DEVICE float widen_f16(std::uint32_t bits) {
  const std::uint32_t magnitude = (bits & 0x7fffU) << 13;
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t finite = __float_as_uint(__uint_as_float(magnitude) * 0x1p112F);
  const std::uint32_t special = magnitude + ((255U - 31U) << 23);
  return __uint_as_float(sign | (magnitude >= 0x0f800000U ? special : finite));
}

HP_DEVICE std::uint32_t narrow_f16(float value) {
  const std::uint32_t bits = __float_as_uint(value);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint16_t rounded;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(rounded) : "f"(value));
  const std::uint32_t not_a_number =
      0x7e00U | ((magnitude >> 13) & 0x3ffU) | ((bits >> 16) & 0x8000U);
  return magnitude > 0x7f800000U ? not_a_number : rounded;
}

// f64 -> f32, rounded to odd: a second rounding, to 16 bits, then equals a single one.
HP_DEVICE float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const std::uint32_t bits = __float_as_uint(nearest);
  const std::uint32_t away = fabs(static_cast<double>(nearest)) > fabs(value) ? 1U : 0U;
  const bool inexact = value == value && static_cast<double>(nearest) != value;
  return inexact ? __uint_as_float((bits - away) | 1U) : nearest;
}

HP_DEVICE const void* moved(const void* data, std::int64_t bytes) {
  return static_cast<const char*>(data) + bytes;
}
HP_DEVICE void* moved(void* data, std::int64_t bytes) { return static_cast<char*>(data) + bytes; }

template <class Real>
HP_DEVICE Real load_number(const void* data, Number number, std::int64_t at) {
  switch (number) {
    case Number::F64:
      return static_cast<Real>(static_cast<const double*>(data)[at]);
    case Number::F32:
      return static_cast<Real>(static_cast<const float*>(data)[at]);
    case Number::F16:
      return static_cast<Real>(widen_f16(static_cast<const std::uint16_t*>(data)[at]));
    case Number::BF16:
      return static_cast<Real>(widen_bf16(static_cast<const std::uint16_t*>(data)[at]));
  }
  return Real{};
}

template <Number kTo>
HP_DEVICE std::uint32_t narrow_half(float value) {
  return kTo == Number::F16 ? narrow_f16(value) : narrow_bf16(value);
}
template <Number kTo>
HP_DEVICE std::uint32_t narrow_half(double value) {
  return narrow_half<kTo>(round_to_odd(value));
}

template <class Real>
HP_DEVICE void store_number(void* data, Number number, std::int64_t at, Real value) {
  switch (number) {
    case Number::F64:
      static_cast<double*>(data)[at] = static_cast<double>(value);
      return;
    case Number::F32:
      static_cast<float*>(data)[at] = static_cast<float>(value);
      return;
    case Number::F16:
      static_cast<std::uint16_t*>(data)[at] =
          static_cast<std::uint16_t>(narrow_half<Number::F16>(value));
      return;
    case Number::BF16:
      static_cast<std::uint16_t*>(data)[at] =
          static_cast<std::uint16_t>(narrow_half<Number::BF16>(value));
      return;
  }
}

// The value after rounding to the type, as Real.
template <class Real>
HP_DEVICE Real round_to(Number number, Real value) {
  switch (number) {
    case Number::F64:
      return value;
    case Number::F32:
      return static_cast<Real>(static_cast<float>(value));
    case Number::F16:
      return static_cast<Real>(widen_f16(narrow_half<Number::F16>(value)));
    case Number::BF16:
      return static_cast<Real>(widen_bf16(narrow_half<Number::BF16>(value)));
  }
  return value;
}

// `kWords` 32-bit words, loaded and stored 16 bytes at a time if there are that many.
template <int kWords>
struct alignas(kWords >= 4 ? 16 : 4 * kWords) Words {
  std::uint32_t at[kWords];
};

// Contiguous numbers, aligned to their total size (to 16 bytes at most).
template <class Real, int kCount>
HP_DEVICE void load_numbers(const void* data, Number number, Real (&values)[kCount]) {
  if (number == Number::F64) {
    const auto words = *static_cast<const Words<2 * kCount>*>(data);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      values[i] = static_cast<Real>(__hiloint2double(static_cast<int>(words.at[2 * i + 1]),
                                                     static_cast<int>(words.at[2 * i])));
    }
  } else if (number == Number::F32) {
    const auto words = *static_cast<const Words<kCount>*>(data);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = static_cast<Real>(__uint_as_float(words.at[i]));
  } else {
    const auto words = *static_cast<const Words<kCount / 2>*>(data);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const std::uint32_t bits = (words.at[i / 2] >> (i % 2 * 16)) & 0xffffU;
      values[i] = static_cast<Real>(number == Number::F16 ? widen_f16(bits) : widen_bf16(bits));
    }
  }
}

template <Number kTo, class Real, int kCount>
HP_DEVICE void store_halves(void* data, const Real (&values)[kCount]) {
  Words<kCount / 2> words;
#pragma unroll
  for (int i = 0; i < kCount; i += 2) {
    words.at[i / 2] = narrow_half<kTo>(values[i]) | narrow_half<kTo>(values[i + 1]) << 16;
  }
  *static_cast<Words<kCount / 2>*>(data) = words;
}

template <class Real, int kCount>
HP_DEVICE void store_numbers(void* data, Number number, const Real (&values)[kCount]) {
  if (number == Number::F64) {
    Words<2 * kCount> words;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const auto value = static_cast<double>(values[i]);
      words.at[2 * i] = static_cast<std::uint32_t>(__double2loint(value));
      words.at[2 * i + 1] = static_cast<std::uint32_t>(__double2hiint(value));
    }
    *static_cast<Words<2 * kCount>*>(data) = words;
  } else if (number == Number::F32) {
    Words<kCount> words;
#pragma unroll
    for (int i = 0; i < kCount; ++i) words.at[i] = __float_as_uint(static_cast<float>(values[i]));
    *static_cast<Words<kCount>*>(data) = words;
  } else if (number == Number::F16) {
    store_halves<Number::F16>(data, values);
  } else {
    store_halves<Number::BF16>(data, values);
  }
}

// Adds the offsets of iteration number `turn` of loops [first, last), the last loop fastest.
template <class Index, int kOperands>
HP_DEVICE void add_offsets(const LoopNest<kOperands>& nest, int first, int last, Index turn,
                           std::int64_t (&offsets)[kOperands]) {
#pragma unroll 1
  for (int loop = last - 1; loop >= first; --loop) {
    const auto length = static_cast<Index>(nest.lengths[loop]);
    const Index outer = turn / length;
    const auto at = static_cast<std::int64_t>(turn - outer * length);
#pragma unroll
    for (int i = 0; i < kOperands; ++i) offsets[i] += at * nest.bytes[loop][i];
    turn = outer;
  }
}

HP_DEVICE std::int64_t thread_of_grid() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
HP_DEVICE std::int64_t threads_of_grid() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}
HP_DEVICE std::int64_t warp_of_grid() { return thread_of_grid() / 32; }
HP_DEVICE std::int64_t warps_of_grid() { return threads_of_grid() / 32; }

template <class Real>
HP_DEVICE Real warp_sum(Real value) {
#pragma unroll
  for (int other = 16; other > 0; other /= 2) value += __shfl_xor_sync(~0U, value, other);
  return value;
}

template <class Real>
HP_DEVICE Real warp_max(Real value) {
#pragma unroll
  for (int other = 16; other > 0; other /= 2) {
    const Real found = __shfl_xor_sync(~0U, value, other);
    value = found > value ? found : value;
  }
  return value;
}

HP_DEVICE float exponential(float x) { return expf(x); }
HP_DEVICE double exponential(double x) { return exp(x); }

template <class Real>
HP_DEVICE Real none() {  // the logarithm of 0
  return -static_cast<Real>(__int_as_float(0x7f800000));
}

}  // namespace harpe::device
