#include "ir/tensor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ir/rounding.h"
#include "support/check.h"
#include "support/rng.h"

namespace harpe {
namespace {

// Rounds to nearest even; saturates; NaN becomes 0.
template <class Integer>
Integer to_integer(double value) {
  using Limits = std::numeric_limits<Integer>;
  if (std::isnan(value)) return 0;
  const double nearest = std::nearbyint(value);
  if (nearest <= static_cast<double>(Limits::min())) return Limits::min();
  if (nearest >= std::ldexp(1.0, Limits::digits)) return Limits::max();
  return static_cast<Integer>(nearest);
}

// One struct per type: its bits in memory and its value as f64.
struct AsF64 {
  using Bits = double;
  static double load(Bits bits) { return bits; }
  static Bits store(double value) { return value; }
};
struct AsF32 {
  using Bits = float;
  static double load(Bits bits) { return static_cast<double>(bits); }
  static Bits store(double value) { return static_cast<float>(value); }
};
struct AsF16 {
  using Bits = std::uint16_t;
  static double load(Bits bits) { return static_cast<double>(widen_f16(bits)); }
  static Bits store(double value) { return narrow_f16(round_to_odd(value)); }
};
struct AsBF16 {
  using Bits = std::uint16_t;
  static double load(Bits bits) { return static_cast<double>(widen_bf16(bits)); }
  static Bits store(double value) { return narrow_bf16(round_to_odd(value)); }
};
struct AsE4M3 {
  using Bits = std::uint8_t;
  static double load(Bits bits) { return static_cast<double>(widen_f8(kE4M3, bits)); }
  static Bits store(double value) { return narrow_f8(kE4M3, round_to_odd(value)); }
};
struct AsE5M2 {
  using Bits = std::uint8_t;
  static double load(Bits bits) { return static_cast<double>(widen_f8(kE5M2, bits)); }
  static Bits store(double value) { return narrow_f8(kE5M2, round_to_odd(value)); }
};
template <class Integer>
struct AsInteger {
  using Bits = Integer;
  static double load(Bits bits) { return static_cast<double>(bits); }
  static Bits store(double value) { return to_integer<Integer>(value); }
};

struct AsBool {
  using Bits = std::uint8_t;
  static double load(Bits bits) { return bits != 0 ? 1 : 0; }
  static Bits store(double value) { return value != 0 ? 1 : 0; }
};

template <class F>
decltype(auto) visit(DType dtype, F&& f) {
  switch (dtype) {
    case DType::F64:
      return f(AsF64{});
    case DType::F32:
      return f(AsF32{});
    case DType::F16:
      return f(AsF16{});
    case DType::BF16:
      return f(AsBF16{});
    case DType::F8E4M3:
      return f(AsE4M3{});
    case DType::F8E5M2:
      return f(AsE5M2{});
    case DType::I32:
      return f(AsInteger<std::int32_t>{});
    case DType::I64:
      return f(AsInteger<std::int64_t>{});
    case DType::I8:
      return f(AsInteger<std::int8_t>{});
    case DType::U8:
      return f(AsInteger<std::uint8_t>{});
    case DType::Bool:
      return f(AsBool{});
  }
  raise_internal_error("known dtype", __FILE__, __LINE__,
                       "dtype " + std::to_string(static_cast<int>(dtype)));
}

template <class As>
typename As::Bits* elements(HostTensor& tensor) {
  return reinterpret_cast<typename As::Bits*>(tensor.data.data());
}
template <class As>
const typename As::Bits* elements(const HostTensor& tensor) {
  return reinterpret_cast<const typename As::Bits*>(tensor.data.data());
}

std::uint64_t stream_key(std::uint64_t seed, const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // 64-bit FNV-1a
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  return mix_bits(hash ^ mix_bits(seed + kStreamStep));
}

}  // namespace

std::int64_t element_count(const HostTensor& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t extent : tensor.shape) count *= extent;
  return count;
}

HostTensor make_tensor(DType dtype, std::vector<std::int64_t> shape) {
  HostTensor tensor{.dtype = dtype, .shape = std::move(shape), .data = {}};
  tensor.data.resize(static_cast<std::size_t>(element_count(tensor) * size_in_bytes(dtype)));
  return tensor;
}

double load(const HostTensor& tensor, std::int64_t index) {
  return visit(tensor.dtype, [&]<class As>(As) { return As::load(elements<As>(tensor)[index]); });
}

void store(HostTensor& tensor, std::int64_t index, double value) {
  visit(tensor.dtype, [&]<class As>(As) { elements<As>(tensor)[index] = As::store(value); });
}

double largest_magnitude(const HostTensor& tensor) {
  double largest = 0;
  const std::int64_t count = element_count(tensor);
  visit(tensor.dtype, [&]<class As>(As) {
    const auto* values = elements<As>(tensor);
    for (std::int64_t i = 0; i < count; ++i) {
      const double x = std::abs(As::load(values[i]));
      if (std::isfinite(x)) largest = std::max(largest, x);
    }
  });
  return largest;
}

HostTensor convert(const HostTensor& tensor, DType dtype) {
  if (dtype == tensor.dtype) return tensor;
  HostTensor out = make_tensor(dtype, tensor.shape);
  const std::int64_t count = element_count(tensor);
  visit(tensor.dtype, [&]<class From>(From) {
    visit(dtype, [&]<class To>(To) {
      const auto* source = elements<From>(tensor);
      auto* destination = elements<To>(out);
      for (std::int64_t i = 0; i < count; ++i) destination[i] = To::store(From::load(source[i]));
    });
  });
  return out;
}

float bf16_to_f32(std::uint16_t bits) { return widen_bf16(bits); }
std::uint16_t f32_to_bf16(float value) { return narrow_bf16(value); }
float f16_to_f32(std::uint16_t bits) { return widen_f16(bits); }
std::uint16_t f32_to_f16(float value) { return narrow_f16(value); }

HostTensor random_tensor(DType dtype, std::vector<std::int64_t> shape, std::uint64_t seed,
                         const std::string& name) {
  HostTensor tensor = make_tensor(dtype, std::move(shape));
  const std::int64_t count = element_count(tensor);
  const std::uint64_t key = stream_key(seed, name);
  visit(dtype, [&]<class As>(As) {
    auto* out = elements<As>(tensor);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint64_t bits = mix_bits(key + static_cast<std::uint64_t>(i + 1) * kStreamStep);
      // 53 random bits, a multiple of 2^-52 in [-1, 1): exact in f64.
      out[i] =
          As::store(static_cast<double>(static_cast<std::int64_t>(bits >> 11)) * 0x1p-52 - 1.0);
    }
  });
  return tensor;
}

}  // namespace harpe
