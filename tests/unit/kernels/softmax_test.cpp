#include "exec/cpu/kernels/softmax.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace harpe {
namespace softmax_test {

struct alignas(64) Sixteen {
  float values[16];
};

float exponential(float x) {
  Sixteen in{}, out{};
  for (float& value : in.values) value = x;
  exponentials(out.values, in.values, 16);
  return out.values[7];
}

// The error of `got` in units of the last place of f32.
double ulps(float got, double exact) {
  const double unit = std::ldexp(1.0, std::ilogb(exact) - 23);
  return std::fabs(static_cast<double>(got) - exact) / unit;
}

TEST(Exponential, is_within_two_units_in_the_last_place) {
  double worst = 0;
  Sixteen in{}, out{};
  int filled = 0;
  // Every 199th number of both signs between -87.3 and 88, including the ends.
  const auto check = [&](float x) {
    in.values[filled++] = x;
    if (filled < 16) return;
    filled = 0;
    exponentials(out.values, in.values, 16);
    for (int i = 0; i < 16; ++i) {
      worst = std::max(worst, ulps(out.values[i], std::exp(static_cast<double>(in.values[i]))));
    }
  };
  for (std::uint32_t bits = std::bit_cast<std::uint32_t>(87.3F); bits > 199; bits -= 199) {
    check(-std::bit_cast<float>(bits));
    check(std::bit_cast<float>(bits));
  }
  check(88.0F);
  RecordProperty("worst_ulp", std::to_string(worst));
  EXPECT_LE(worst, 2.0);
  EXPECT_GE(worst, 0.4);  // the test can detect errors
}

TEST(Exponential, has_its_special_values) {
  EXPECT_EQ(exponential(0.0F), 1.0F);
  EXPECT_EQ(exponential(-0.0F), 1.0F);
  EXPECT_EQ(exponential(-std::numeric_limits<float>::infinity()), 0.0F);
  EXPECT_EQ(exponential(-1e30F), 0.0F);
  EXPECT_EQ(exponential(-100.0F), 0.0F);
  EXPECT_TRUE(std::isnan(exponential(std::nanf(""))));
}

TEST(Exponential, never_grows_below_zero_where_it_fades_out) {
  float last = exponential(-86.0F);
  for (float x = -86.0F; x > -89.0F; x -= 0.001F) {
    const float value = exponential(x);
    ASSERT_LE(value, last) << x;
    ASSERT_GE(value, 0.0F) << x;
    last = value;
  }
  EXPECT_EQ(last, 0.0F);
}

}  // namespace softmax_test
}  // namespace harpe
