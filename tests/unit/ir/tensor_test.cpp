#include "ir/tensor.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <vector>

namespace harpe {
namespace tensor_test {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr DType kFloating[] = {DType::F64,  DType::F32,    DType::F16,
                               DType::BF16, DType::F8E4M3, DType::F8E5M2};

TEST(Tensor, begins_as_zeros_of_its_shape) {
  const HostTensor tensor = make_tensor(DType::BF16, {2, 3, 5});
  EXPECT_EQ(element_count(tensor), 30);
  EXPECT_EQ(std::ssize(tensor.data), 60);
  for (std::int64_t i = 0; i < 30; ++i) EXPECT_EQ(load(tensor, i), 0.0);
  EXPECT_EQ(element_count(make_tensor(DType::F32, {})), 1);
}

TEST(Tensor, loads_what_was_stored_in_every_floating_type) {
  for (const DType dtype : kFloating) {
    HostTensor tensor = make_tensor(dtype, {4});
    const double values[] = {-1.5, 0.25, -0.0, 3.0};
    for (std::int64_t i = 0; i < 4; ++i) store(tensor, i, values[i]);
    for (std::int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(load(tensor, i), values[i]) << print(dtype);
      EXPECT_EQ(std::signbit(load(tensor, i)), std::signbit(values[i]));
    }
  }
}

TEST(Tensor, keeps_nan_and_infinities) {
  for (const DType dtype : kFloating) {
    HostTensor tensor = make_tensor(dtype, {3});
    store(tensor, 0, std::nan(""));
    store(tensor, 1, kInfinity);
    store(tensor, 2, -kInfinity);
    EXPECT_TRUE(std::isnan(load(tensor, 0))) << print(dtype);
    if (dtype == DType::F8E4M3) {  // has no infinity
      EXPECT_TRUE(std::isnan(load(tensor, 1)) && std::isnan(load(tensor, 2)));
    } else {
      EXPECT_EQ(load(tensor, 1), kInfinity) << print(dtype);
      EXPECT_EQ(load(tensor, 2), -kInfinity) << print(dtype);
    }
  }
}

TEST(Tensor, rounds_once_to_nearest_even) {
  for (const DType dtype : kFloating) {
    const double unit = 2 * unit_roundoff(dtype);  // from 1 to the next number
    HostTensor tensor = make_tensor(dtype, {6});
    store(tensor, 0, 1 + unit / 2);
    store(tensor, 1, 1 + 3 * unit / 2);
    EXPECT_EQ(load(tensor, 0), 1.0) << print(dtype);
    EXPECT_EQ(load(tensor, 1), 1 + 2 * unit) << print(dtype);
    if (dtype == DType::F64) continue;
    // One f64 step beyond the tie: rounding through f32 would give 1.
    store(tensor, 2, std::nextafter(1 + unit / 2, 2.0));
    store(tensor, 3, std::nextafter(1 + unit / 2, 0.0));
    EXPECT_EQ(load(tensor, 2), 1 + unit) << print(dtype);
    EXPECT_EQ(load(tensor, 3), 1.0) << print(dtype);
    if (dtype == DType::F32) continue;
    store(tensor, 4, 1e-300);
    store(tensor, 5, dtype == DType::F8E4M3 ? 448.0 : 1e300);
    EXPECT_EQ(load(tensor, 4), 0.0) << print(dtype);
    EXPECT_EQ(load(tensor, 5), dtype == DType::F8E4M3 ? 448.0 : kInfinity) << print(dtype);
  }
}

TEST(Tensor, holds_integers_up_to_the_ends_of_their_range) {
  HostTensor tensor = make_tensor(DType::I32, {5});
  const double values[] = {2.5, -7, 1e12, -1e12, std::nan("")};
  const double kept[] = {2, -7, 2147483647.0, -2147483648.0, 0};
  for (std::int64_t i = 0; i < 5; ++i) {
    store(tensor, i, values[i]);
    EXPECT_EQ(load(tensor, i), kept[i]);
  }
}

TEST(Tensor, holds_small_integers_and_booleans_too) {
  const double values[] = {2.5, -7, 1e3, -1e3, std::nan("")};
  const std::map<DType, std::vector<double>> kept = {{DType::I8, {2, -7, 127, -128, 0}},
                                                     {DType::U8, {2, 0, 255, 0, 0}},
                                                     {DType::I64, {2, -7, 1000, -1000, 0}},
                                                     {DType::Bool, {1, 1, 1, 1, 1}}};
  for (const auto& [dtype, wanted] : kept) {
    HostTensor tensor = make_tensor(dtype, {5});
    for (std::int64_t i = 0; i < 5; ++i) {
      store(tensor, i, values[i]);
      EXPECT_EQ(load(tensor, i), wanted[static_cast<std::size_t>(i)]) << print(dtype) << " " << i;
    }
  }
}

TEST(Tensor, knows_its_largest_finite_magnitude) {
  HostTensor tensor = make_tensor(DType::F16, {4});
  EXPECT_EQ(largest_magnitude(tensor), 0);
  store(tensor, 1, -3);
  store(tensor, 2, std::nan(""));
  store(tensor, 3, 1e9);
  EXPECT_EQ(largest_magnitude(tensor), 3) << "infinity and NaN are left out";
}

TEST(Tensor, converts_to_a_wider_type_and_back_without_loss) {
  for (const DType dtype : kFloating) {
    const HostTensor tensor = random_tensor(dtype, {7, 11}, 3, "x");
    const HostTensor wide = convert(tensor, DType::F64);
    EXPECT_EQ(wide.shape, tensor.shape);
    EXPECT_EQ(convert(wide, dtype).data, tensor.data) << print(dtype);
  }
}

TEST(Tensor, has_the_same_half_precision_as_its_functions) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    const float bf16 = bf16_to_f32(pattern);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(bf16), bits << 16);
    ASSERT_TRUE(std::isnan(bf16) || f32_to_bf16(bf16) == pattern) << bits;
    const float f16 = f16_to_f32(pattern);
    ASSERT_TRUE(std::isnan(f16) || f32_to_f16(f16) == pattern) << bits;
  }
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7f800001U)))));
  EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(std::bit_cast<float>(0xff800001U)))));
  EXPECT_EQ(f16_to_f32(0x0001), 0x1p-24F);
  EXPECT_EQ(f16_to_f32(0x7bff), 65504.0F);
  EXPECT_EQ(f32_to_f16(65519.0F), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7c00);
}

// Every recorded result depends on these numbers: they are part of the contract.
TEST(RandomTensor, never_changes) {
  const HostTensor tensor = random_tensor(DType::F64, {4}, 1, "q");
  EXPECT_EQ(load(tensor, 0), -0x1.b6c4036106f5ep-1);
  EXPECT_EQ(load(tensor, 1), 0x1.21af79ca80d88p-2);
  EXPECT_EQ(load(tensor, 2), -0x1.73dc3e91eb970p-2);
  EXPECT_EQ(load(tensor, 3), -0x1.834b8818e1974p-2);
}

TEST(RandomTensor, gives_each_element_by_seed_name_and_index_alone) {
  const HostTensor small = random_tensor(DType::F32, {10}, 5, "a");
  const HostTensor large = random_tensor(DType::F32, {3, 100}, 5, "a");
  for (std::int64_t i = 0; i < 10; ++i) EXPECT_EQ(load(small, i), load(large, i));
  EXPECT_NE(random_tensor(DType::F32, {10}, 6, "a").data, small.data);
  EXPECT_NE(random_tensor(DType::F32, {10}, 5, "b").data, small.data);
  EXPECT_EQ(random_tensor(DType::BF16, {10}, 5, "a").data,
            convert(random_tensor(DType::F64, {10}, 5, "a"), DType::BF16).data);
}

TEST(RandomTensor, is_uniform_between_minus_one_and_one) {
  constexpr std::int64_t kCount = 100000;
  const HostTensor tensor = random_tensor(DType::F64, {kCount}, 9, "x");
  double sum = 0, squares = 0, least = 1, most = -1;
  std::set<double> distinct;
  for (std::int64_t i = 0; i < kCount; ++i) {
    const double value = load(tensor, i);
    sum += value;
    squares += value * value;
    least = std::min(least, value);
    most = std::max(most, value);
    distinct.insert(value);
  }
  // Five deviations: the mean is 0 with 1/sqrt(3 n), the mean square 1/3 with sqrt(4/45 n).
  EXPECT_LT(std::fabs(sum / kCount), 5 / std::sqrt(3.0 * kCount));
  EXPECT_LT(std::fabs(squares / kCount - 1.0 / 3), 5 * std::sqrt(4.0 / 45 / kCount));
  EXPECT_GE(least, -1.0);
  EXPECT_LT(most, 1.0);
  EXPECT_LT(least, -0.999);
  EXPECT_GT(most, 0.999);
  EXPECT_EQ(std::ssize(distinct), kCount);
}

}  // namespace tensor_test
}  // namespace harpe
