#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace harpe {

// Narrow floating types as bit patterns: rounding to nearest even, NaN preserved. The hot functions
// are inline and branch-free, so that loops over them vectorise. Assumes the default rounding mode.

[[nodiscard, gnu::always_inline]] inline float widen_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

[[nodiscard, gnu::always_inline]] inline std::uint16_t narrow_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x40U;
  return static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet : rounded);
}

[[nodiscard, gnu::always_inline]] inline float widen_f16(std::uint16_t bits) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fffU) << 13;
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  // Rebias by a multiplication, which also normalises f16 subnormals.
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112F;
  const std::uint32_t finite = std::bit_cast<std::uint32_t>(scaled);
  const std::uint32_t special = magnitude + ((255U - 31U) << 23);
  return std::bit_cast<float>(sign | (magnitude >= 0x0f800000U ? special : finite));
}

[[nodiscard, gnu::always_inline]] inline std::uint16_t narrow_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  const std::uint32_t odd = (magnitude >> 13) & 1U;
  const std::uint32_t normal = (magnitude - ((127U - 15U) << 23) + 0xfffU + odd) >> 13;
  // One unit in the last place of 0.5f is the smallest f16: the addition itself rounds.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U;
  const std::uint32_t not_a_number = 0x7e00U | ((magnitude >> 13) & 0x3ffU);
  std::uint32_t out = magnitude < 0x38800000U ? subnormal : normal;
  out = magnitude >= 0x47800000U ? 0x7c00U : out;
  out = magnitude > 0x7f800000U ? not_a_number : out;
  return static_cast<std::uint16_t>(out | ((bits >> 16) & 0x8000U));
}

// f64 -> f32 rounded to odd: inexact results get an odd last place, so that rounding the result
// once more, to any type with at most 22 significant bits, equals one rounding of the f64 value.
[[nodiscard, gnu::always_inline]] inline float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  const std::uint32_t away = std::fabs(static_cast<double>(nearest)) > std::fabs(value) ? 1U : 0U;
  const bool inexact = value == value && static_cast<double>(nearest) != value;
  return std::bit_cast<float>(inexact ? (bits - away) | 1U : bits);
}

// The f8 types by their fields. E4M3 has no infinity: its largest exponent holds numbers, and all
// ones are NaN. Values beyond its range become that NaN.
struct F8Format {
  int mantissa;
  int bias;
  bool infinity;
};
constexpr F8Format kE4M3{.mantissa = 3, .bias = 7, .infinity = false};
constexpr F8Format kE5M2{.mantissa = 2, .bias = 15, .infinity = true};

[[nodiscard]] inline float widen_f8(F8Format format, std::uint8_t bits) {
  const int magnitude = bits & 0x7f;
  const int exponent = magnitude >> format.mantissa;
  const int fraction = magnitude & ((1 << format.mantissa) - 1);
  const float sign = (bits & 0x80) != 0 ? -1.0F : 1.0F;
  if (format.infinity && exponent == (1 << (7 - format.mantissa)) - 1) {
    return fraction == 0 ? sign * std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  }
  if (!format.infinity && magnitude == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  const int implicit = exponent == 0 ? 0 : 1 << format.mantissa;
  const int scale = std::max(exponent, 1) - format.bias - format.mantissa;
  return sign * std::ldexp(static_cast<float>(implicit + fraction), scale);
}

[[nodiscard]] inline std::uint8_t narrow_f8(F8Format format, float value) {
  const int sign = std::signbit(value) ? 0x80 : 0;
  const int last_exponent = (1 << (7 - format.mantissa)) - 1;
  const int beyond = format.infinity ? last_exponent << format.mantissa : 0x7f;
  if (std::isnan(value)) return static_cast<std::uint8_t>(sign | 0x7f);
  if (std::isinf(value)) return static_cast<std::uint8_t>(sign | beyond);
  const int lowest = 1 - format.bias;
  const int exponent = value == 0 ? lowest : std::max(std::ilogb(value), lowest);
  // In units of the last place; a carry into the next binade yields the right code as it is.
  const float units = std::nearbyint(std::ldexp(std::fabs(value), format.mantissa - exponent));
  const float code = units + std::ldexp(static_cast<float>(exponent - lowest), format.mantissa);
  return static_cast<std::uint8_t>(sign |
                                   static_cast<int>(std::min(code, static_cast<float>(beyond))));
}

}  // namespace harpe
