#include "exec/cpu/kernels/pointwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "ir/tensor.h"

namespace harpe {
namespace {

double textbook(Pointwise function, double a, double b, double features, double epsilon) {
  const double silu = a / (1 + std::exp(-a));
  switch (function) {
    case Pointwise::Silu:
      return silu;
    case Pointwise::Relu:
      return std::max(a, 0.0);
    case Pointwise::Gelu:
      return a * (1 + std::erf(a / std::numbers::sqrt2)) / 2;
    case Pointwise::Add:
      return a + b;
    case Pointwise::Mul:
      return a * b;
    case Pointwise::SiluMul:
      return silu * b;
    case Pointwise::RmsScale:
      return a / std::sqrt(b / features + epsilon);
  }
  return 0;
}

struct Types {
  DType a, b, to;
};

class PointwiseTypes : public testing::TestWithParam<Types> {};

// Lengths around the kernel's chunk, with b dense or one number for all.
TEST_P(PointwiseTypes, agrees_with_f64_within_its_rounding) {
  for (const char* leaf : {"silu", "relu", "gelu", "add", "mul", "silu_mul", "rms_scale"}) {
    const Pointwise function = *find_pointwise(leaf);
    for (const std::int64_t length : {1, 511, 512, 1300}) {
      for (const std::int64_t b_stride : {0, 1, 3}) {
        const std::int64_t stride = 1 + b_stride % 2 * 2;  // of a and of the result
        const HostTensor a = random_tensor(GetParam().a, {stride * length}, 1, leaf);
        HostTensor b = random_tensor(GetParam().b, {3 * length}, 2, leaf);
        for (std::int64_t i = 0; i < element_count(b); ++i) {  // a sum of squares is never negative
          if (function == Pointwise::RmsScale) store(b, i, std::abs(load(b, i)));
        }
        HostTensor to = make_tensor(GetParam().to, {stride * length});
        apply_pointwise({.function = function,
                         .length = length,
                         .to = to.data.data(),
                         .to_dtype = to.dtype,
                         .to_stride = stride,
                         .a = {.data = a.data.data(), .dtype = a.dtype, .stride = stride},
                         .b = {.data = b.data.data(), .dtype = b.dtype, .stride = b_stride},
                         .features = 4,
                         .epsilon = 1e-3});
        const double roundoff = std::max(unit_roundoff(to.dtype), unit_roundoff(DType::F32));
        for (std::int64_t i = 0; i < length; ++i) {
          const double wanted =
              textbook(function, load(a, i * stride), load(b, i * b_stride), 4, 1e-3);
          ASSERT_NEAR(load(to, i * stride), wanted, 4 * roundoff * std::max(1.0, std::abs(wanted)))
              << leaf << " " << length << " " << b_stride << " at " << i;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Some, PointwiseTypes,
                         testing::Values(Types{DType::F32, DType::F32, DType::F32},
                                         Types{DType::BF16, DType::BF16, DType::BF16},
                                         Types{DType::BF16, DType::F32, DType::BF16},
                                         Types{DType::F16, DType::F16, DType::F32},
                                         Types{DType::F64, DType::F64, DType::F64}));

template <class Real>
Real apply_to(const char* leaf, DType dtype, Real a, Real b = 1) {
  Real out = 0;
  apply_pointwise({.function = *find_pointwise(leaf),
                   .length = 1,
                   .to = &out,
                   .to_dtype = dtype,
                   .a = {.data = &a, .dtype = dtype},
                   .b = {.data = &b, .dtype = dtype}});
  return out;
}

template <class Real>
void expect_no_overflow_inside(DType dtype) {
  constexpr Real kLargest = std::numeric_limits<Real>::max();
  for (const char* leaf : {"silu", "gelu", "relu", "silu_mul"}) {
    EXPECT_EQ(apply_to<Real>(leaf, dtype, kLargest), kLargest) << leaf;
    EXPECT_EQ(apply_to<Real>(leaf, dtype, -kLargest), 0) << leaf;
  }
}

TEST(Pointwise, does_not_overflow_inside) {
  expect_no_overflow_inside<float>(DType::F32);
  expect_no_overflow_inside<double>(DType::F64);
  // e^-x overflows, but x / (1 + e^-x) is a normal number.
  EXPECT_FLOAT_EQ(apply_to<float>("silu", DType::F32, -90),
                  static_cast<float>(-90 * std::exp(-90.0)));
  EXPECT_FLOAT_EQ(apply_to<float>("silu_mul", DType::F32, -90, 1e30F),
                  static_cast<float>(-90 * std::exp(-90.0) * 1e30));
  EXPECT_DOUBLE_EQ(apply_to<double>("silu", DType::F64, -712),
                   -712 * std::exp(-356.0) * std::exp(-356.0));
}

TEST(Pointwise, keeps_what_is_not_a_number) {
  const float nan = std::nanf("");
  float out = 0;
  PointwiseProblem problem;
  problem.function = Pointwise::Relu;
  problem.length = 1;
  problem.to = &out;
  problem.a.data = &nan;
  apply_pointwise(problem);
  EXPECT_TRUE(std::isnan(out));
}

TEST(Pointwise, finds_its_leaves_by_name) {
  EXPECT_EQ(find_pointwise("silu_mul"), Pointwise::SiluMul);
  EXPECT_FALSE(find_pointwise("matmul").has_value());
}

}  // namespace
}  // namespace harpe
