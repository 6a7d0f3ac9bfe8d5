#pragma once

#include <cstdint>
#include <string>

#include "ir/dtype.h"
#include "ir/rounding.h"
#include "support/check.h"

namespace harpe {

// Storage types as C++ types: an element's bits in memory, and f32 or f64, whichever represents it
// exactly.
struct StoredF64 {
  using Bits = double;
  [[gnu::always_inline]] static double widen(Bits bits) { return bits; }
  [[gnu::always_inline]] static Bits narrow(float value) { return static_cast<double>(value); }
  [[gnu::always_inline]] static Bits narrow(double value) { return value; }
};
struct StoredF32 {
  using Bits = float;
  [[gnu::always_inline]] static float widen(Bits bits) { return bits; }
  [[gnu::always_inline]] static Bits narrow(float value) { return value; }
  [[gnu::always_inline]] static Bits narrow(double value) { return static_cast<float>(value); }
};
struct StoredF16 {
  using Bits = std::uint16_t;
  [[gnu::always_inline]] static float widen(Bits bits) { return widen_f16(bits); }
  [[gnu::always_inline]] static Bits narrow(float value) { return narrow_f16(value); }
  [[gnu::always_inline]] static Bits narrow(double value) {
    return narrow_f16(round_to_odd(value));
  }
};
struct StoredBF16 {
  using Bits = std::uint16_t;
  [[gnu::always_inline]] static float widen(Bits bits) { return widen_bf16(bits); }
  [[gnu::always_inline]] static Bits narrow(float value) { return narrow_bf16(value); }
  [[gnu::always_inline]] static Bits narrow(double value) {
    return narrow_bf16(round_to_odd(value));
  }
};
template <int kMantissa>
struct StoredF8 {
  using Bits = std::uint8_t;
  static constexpr F8Format kFormat = kMantissa == 3 ? kE4M3 : kE5M2;
  static float widen(Bits bits) { return widen_f8(kFormat, bits); }
  static Bits narrow(float value) { return narrow_f8(kFormat, value); }
  static Bits narrow(double value) { return narrow_f8(kFormat, round_to_odd(value)); }
};

// f(StoredX{}) for the storage type of a floating dtype.
template <class F>
[[gnu::always_inline]] inline void with_stored(DType dtype, F&& f) {
  switch (dtype) {
    case DType::F64:
      return f(StoredF64{});
    case DType::F32:
      return f(StoredF32{});
    case DType::F16:
      return f(StoredF16{});
    case DType::BF16:
      return f(StoredBF16{});
    case DType::F8E4M3:
      return f(StoredF8<3>{});
    case DType::F8E5M2:
      return f(StoredF8<2>{});
    default:
      break;
  }
  HP_CHECK(is_floating(dtype), "arithmetic on `" + std::string(print(dtype)) + "`");
}

}  // namespace harpe
