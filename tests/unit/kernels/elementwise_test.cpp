#include "exec/cpu/kernels/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "ir/tensor.h"
#include "support/check.h"
#include "tests/unit/kernels/matrices.h"

namespace harpe {
namespace elementwise_test {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The value of a 16-bit float by definition.
double decode(DType dtype, std::uint16_t bits) {
  const int mantissa = dtype == DType::BF16 ? 7 : 10;
  const int largest = (1 << (15 - mantissa)) - 1;
  const int exponent = (bits & 0x7fff) >> mantissa;
  const int fraction = bits & ((1 << mantissa) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == largest) return fraction == 0 ? sign * kInfinity : std::nan("");
  const int scale = std::max(exponent, 1) - largest / 2 - mantissa;
  return sign * std::ldexp((exponent == 0 ? 0 : 1 << mantissa) + fraction, scale);
}

std::vector<std::uint16_t> all_patterns() {
  std::vector<std::uint16_t> patterns(65536);
  std::iota(patterns.begin(), patterns.end(), std::uint16_t{0});
  return patterns;
}

template <class T>
std::uint16_t narrow(DType dtype, DType from, T value) {
  std::uint16_t out = 0;
  convert(&out, dtype, &value, from, 1);
  return out;
}

class Sixteen : public testing::TestWithParam<DType> {};

TEST_P(Sixteen, widens_every_pattern_exactly) {
  const std::vector<std::uint16_t> patterns = all_patterns();
  std::vector<float> f32(patterns.size());
  std::vector<double> f64(patterns.size());
  convert(f32.data(), DType::F32, patterns.data(), GetParam(), std::ssize(patterns));
  convert(f64.data(), DType::F64, patterns.data(), GetParam(), std::ssize(patterns));
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const double expected = decode(GetParam(), patterns[i]);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(f32[i]) && std::isnan(f64[i])) << i;
    } else {
      ASSERT_EQ(static_cast<double>(f32[i]), expected) << i;
      ASSERT_EQ(f64[i], expected) << i;
      ASSERT_EQ(std::signbit(f32[i]), std::signbit(expected)) << i;
    }
  }
}

TEST_P(Sixteen, comes_back_from_wider_types_unchanged) {
  const std::vector<std::uint16_t> patterns = all_patterns();
  for (const DType wide : {DType::F32, DType::F64}) {
    std::vector<double> memory(patterns.size());
    std::vector<std::uint16_t> back(patterns.size());
    convert(memory.data(), wide, patterns.data(), GetParam(), std::ssize(patterns));
    convert(back.data(), GetParam(), memory.data(), wide, std::ssize(patterns));
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      if (std::isnan(decode(GetParam(), patterns[i]))) {
        ASSERT_TRUE(std::isnan(decode(GetParam(), back[i]))) << i;
      } else {
        ASSERT_EQ(back[i], patterns[i]) << print(wide);
      }
    }
  }
}

TEST_P(Sixteen, rounds_between_every_two_neighbours_to_the_nearest_and_ties_to_even) {
  for (std::uint32_t pattern = 0; pattern < 0x7fff; ++pattern) {
    const auto lower = static_cast<std::uint16_t>(pattern);
    const auto upper = static_cast<std::uint16_t>(pattern + 1);
    const double low = decode(GetParam(), lower);
    double high = decode(GetParam(), upper);
    if (!std::isfinite(low)) break;
    // Behind the largest number the next step would be a power of two, where infinity begins.
    if (std::isinf(high))
      high = 2 * low - decode(GetParam(), static_cast<std::uint16_t>(pattern - 1));
    const double middle = low + (high - low) / 2;
    const std::uint16_t even = lower % 2 == 0 ? lower : upper;
    ASSERT_EQ(narrow(GetParam(), DType::F32, static_cast<float>(middle)), even) << pattern;
    ASSERT_EQ(narrow(GetParam(), DType::F64, middle), even) << pattern;
    ASSERT_EQ(narrow(GetParam(), DType::F64, -middle), even | 0x8000) << pattern;
    const float above = std::nextafterf(static_cast<float>(middle), INFINITY);
    const float below = std::nextafterf(static_cast<float>(middle), 0.0F);
    ASSERT_EQ(narrow(GetParam(), DType::F32, above), upper) << pattern;
    ASSERT_EQ(narrow(GetParam(), DType::F32, below), lower) << pattern;
    // One f64 step off the midpoint: rounding to f32 first would lose it.
    ASSERT_EQ(narrow(GetParam(), DType::F64, std::nextafter(middle, kInfinity)), upper) << pattern;
    ASSERT_EQ(narrow(GetParam(), DType::F64, std::nextafter(middle, 0.0)), lower) << pattern;
  }
}

TEST_P(Sixteen, agrees_with_the_tensor_functions) {
  const HostTensor f64 = random_tensor(DType::F64, {1000}, 1, "x");
  HostTensor by_kernel = make_tensor(GetParam(), {1000});
  convert(by_kernel.data.data(), GetParam(), f64.data.data(), DType::F64, 1000);
  EXPECT_TRUE(same_bits(by_kernel, convert(f64, GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Types, Sixteen, testing::Values(DType::F16, DType::BF16),
                         [](const auto& type) { return std::string(print(type.param)); });

TEST(Convert, between_the_two_16_bit_types_rounds_once) {
  const std::uint16_t one_third = 0x3eab;  // bf16 0.333984375
  std::uint16_t f16 = 0;
  convert(&f16, DType::F16, &one_third, DType::BF16, 1);
  EXPECT_EQ(decode(DType::F16, f16), 0.333984375);
  const std::uint16_t fine = 0x3801;  // f16 0.5 + 2^-11
  std::uint16_t bf16 = 0;
  convert(&bf16, DType::BF16, &fine, DType::F16, 1);
  EXPECT_EQ(decode(DType::BF16, bf16), 0.5);
}

TEST(Convert, widens_and_narrows_every_f8_pattern) {
  for (const DType dtype : {DType::F8E4M3, DType::F8E5M2}) {
    for (int bits = 0; bits < 256; ++bits) {
      const auto pattern = static_cast<std::uint8_t>(bits);
      float wide = 0;
      convert(&wide, DType::F32, &pattern, dtype, 1);
      std::uint8_t back = 0;
      convert(&back, dtype, &wide, DType::F32, 1);
      if (!std::isnan(wide)) {
        EXPECT_EQ(back, pattern) << print(dtype) << " " << bits;
      } else {
        float again = 0;
        convert(&again, DType::F32, &back, dtype, 1);
        EXPECT_TRUE(std::isnan(again));
      }
    }
  }
  const auto one = [](DType dtype, float value) {
    std::uint8_t out = 0;
    convert(&out, dtype, &value, DType::F32, 1);
    return out;
  };
  EXPECT_EQ(one(DType::F8E4M3, 448.0F), 0x7e);
  EXPECT_EQ(one(DType::F8E4M3, 464.0F), 0x7e);  // a tie, to even
  EXPECT_EQ(one(DType::F8E4M3, 465.0F), 0x7f);  // NaN: there is no infinity
  EXPECT_EQ(one(DType::F8E5M2, 61440.0F), 0x7c);
  EXPECT_EQ(one(DType::F8E4M3, 1.0625F), 0x38);  // tie between 1 and 1.125
}

TEST(Convert, copies_equal_types_bit_by_bit) {
  const std::vector<std::uint16_t> patterns = all_patterns();  // signalling NaN among them
  std::vector<std::uint16_t> out(patterns.size());
  convert(out.data(), DType::F16, patterns.data(), DType::F16, std::ssize(patterns));
  EXPECT_EQ(out, patterns);
  const std::vector<std::int32_t> integers{1, -2, 3};
  std::vector<std::int32_t> copied(3);
  convert(copied.data(), DType::I32, integers.data(), DType::I32, 3);
  EXPECT_EQ(copied, integers);
}

TEST(Convert, of_different_integers_is_an_internal_error) {
  const std::int32_t from = 1;
  std::int64_t to = 0;
  EXPECT_THROW(convert(&to, DType::I64, &from, DType::I32, 1), InternalError);
}

TEST(Add, adds_every_type_to_a_state_with_one_rounding) {
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16, DType::F64}) {
    for (const DType state : {DType::F32, DType::F64}) {
      HostTensor sum = random_tensor(state, {77}, 1, "state");
      const HostTensor before = sum;
      const HostTensor source = random_tensor(dtype, {77}, 1, "source");
      add(sum.data.data(), state, source.data.data(), dtype, 77);
      for (std::int64_t i = 0; i < 77; ++i) {
        const double exact = load(before, i) + load(source, i);
        // From f64 to f32, the source itself is rounded first.
        const double bound = (dtype == DType::F64 ? 2 : 1) * unit_roundoff(state) *
                             (std::fabs(load(before, i)) + std::fabs(load(source, i)));
        EXPECT_LE(std::fabs(load(sum, i) - exact), bound);
      }
    }
  }
}

TEST(Fill, writes_the_identities) {
  for (const DType dtype : {DType::F32, DType::F64, DType::BF16, DType::F16}) {
    HostTensor tensor = random_tensor(dtype, {5}, 1, "x");
    fill(tensor.data.data(), dtype, -kInfinity, 4);
    EXPECT_EQ(load(tensor, 3), -kInfinity);
    EXPECT_TRUE(std::isfinite(load(tensor, 4)));
    fill(tensor.data.data(), dtype, 0, 4);
    EXPECT_EQ(load(tensor, 0), 0.0);
  }
}

struct State {
  std::vector<double> o;
  std::vector<double> lse;
};

State combined(State a, const State& b, std::int64_t value_dim) {
  lse_combine(a.o.data(), value_dim, a.lse.data(), 1, b.o.data(), value_dim, b.lse.data(), 1,
              std::ssize(a.lse), value_dim, DType::F64);
  return a;
}

TEST(LseCombine, weighs_both_sides_by_their_sums) {
  // Two keys of scores ln 3 and ln 1 with values 1 and 5: (3 * 1 + 1 * 5) / 4.
  const State out = combined({{1.0}, {std::log(3.0)}}, {{5.0}, {0.0}}, 1);
  EXPECT_NEAR(out.o[0], 2.0, 1e-15);
  EXPECT_NEAR(out.lse[0], std::log(4.0), 1e-15);
}

TEST(LseCombine, has_an_identity_on_either_side) {
  const State some{{1.5, -2.5}, {0.25}};
  const State none{{0.0, 0.0}, {-kInfinity}};
  EXPECT_EQ(combined(some, none, 2).o, some.o);
  EXPECT_EQ(combined(some, none, 2).lse, some.lse);
  EXPECT_EQ(combined(none, some, 2).o, some.o);
  EXPECT_EQ(combined(none, some, 2).lse, some.lse);
  EXPECT_EQ(combined(none, none, 2).o, none.o);
  EXPECT_EQ(combined(none, none, 2).lse, none.lse);
  // The o of an identity state does not matter.
  EXPECT_EQ(combined(some, {{std::nan(""), 7.0}, {-kInfinity}}, 2).o, some.o);
}

TEST(LseCombine, does_not_overflow_for_distant_sums) {
  const State large{{1.0}, {3000.0}};
  const State small{{9.0}, {-3000.0}};
  EXPECT_EQ(combined(large, small, 1).o[0], 1.0);
  EXPECT_EQ(combined(small, large, 1).o[0], 1.0);
  EXPECT_EQ(combined(small, large, 1).lse[0], 3000.0);
}

TEST(LseCombine, keeps_a_nan_of_either_side_in_its_row) {
  const State some{{1.0, 2.0}, {0.5, 0.5}};
  const State broken{{std::nan(""), 1.0}, {std::nan(""), 0.0}};
  for (const State& out : {combined(some, broken, 1), combined(broken, some, 1)}) {
    EXPECT_TRUE(std::isnan(out.o[0]) && std::isnan(out.lse[0]));
    EXPECT_TRUE(std::isfinite(out.o[1]) && std::isfinite(out.lse[1]));
  }
}

TEST(LseCombine, is_associative_and_commutative_within_roundings_on_strided_f32_rows) {
  constexpr std::int64_t kRows = 9, kDim = 33, kStride = 40, kLseStride = 3;
  const auto make = [](const char* name) {
    return std::pair{random_tensor(DType::F32, {kRows * kStride}, 3, name),
                     random_tensor(DType::F32, {kRows * kLseStride}, 4, name)};
  };
  using Side = decltype(make(""));
  const auto combine = [](Side a, const Side& b) {
    lse_combine(a.first.data.data(), kStride, a.second.data.data(), kLseStride, b.first.data.data(),
                kStride, b.second.data.data(), kLseStride, kRows, kDim, DType::F32);
    return a;
  };
  const Side a = make("a"), b = make("b"), c = make("c");
  const Side left = combine(combine(a, b), c);
  const Side right = combine(combine(c, b), a);
  for (std::int64_t row = 0; row < kRows; ++row) {
    // A weight is an exp in f64, rounded once, with a product and a sum; the logarithm has two
    // folds.
    const double bound = 16 * unit_roundoff(DType::F32);
    EXPECT_NEAR(load(left.second, row * kLseStride), load(right.second, row * kLseStride),
                3 * bound);
    for (std::int64_t i = 0; i < kDim; ++i) {
      EXPECT_NEAR(load(left.first, row * kStride + i), load(right.first, row * kStride + i), bound);
    }
    // Gaps keep their values.
    EXPECT_EQ(load(left.first, row * kStride + kDim), load(a.first, row * kStride + kDim));
  }
}

}  // namespace elementwise_test
}  // namespace harpe
