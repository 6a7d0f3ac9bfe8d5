#include "exec/cpu/kernels/add_rms_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include "ir/rounding.h"
#include "ir/tensor.h"

namespace harpe {
namespace add_rms_norm_test {
namespace {

constexpr double kEpsilon = 1e-5;

// Rows of numbers, `stride` elements apart, with gaps between them.
struct Rows {
  HostTensor tensor;
  std::int64_t row_stride = 0;
  std::int64_t stride = 1;

  Rows(DType dtype, std::int64_t rows, std::int64_t length, std::int64_t step)
      : tensor(make_tensor(dtype, {rows, length * step + 3})),
        row_stride(length * step + 3),
        stride(step) {}

  [[nodiscard]] double at(std::int64_t row, std::int64_t i) const {
    return load(tensor, row * row_stride + i * stride);
  }
  void set(std::int64_t row, std::int64_t i, double value) {
    store(tensor, row * row_stride + i * stride, value);
  }
  [[nodiscard]] AddRmsNormProblem::Rows read() const {
    return {tensor.data.data(), tensor.dtype, row_stride, stride};
  }
  [[nodiscard]] AddRmsNormProblem::Results write() {
    return {tensor.data.data(), tensor.dtype, row_stride, stride};
  }
};

struct Case {
  DType dtype;
  DType sum_dtype;
  std::int64_t rows;
  std::int64_t length;
  std::int64_t step;
};

struct Ran {
  Rows x, residual, weight, sum, y;
};

Ran run(const Case& c, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Ran ran{.x = {c.dtype, c.rows, c.length, c.step},
          .residual = {c.dtype, c.rows, c.length, 1},
          .weight = {c.dtype, 1, c.length, c.step},
          .sum = {c.sum_dtype, c.rows, c.length, 1},
          .y = {c.dtype, c.rows, c.length, c.step}};
  for (std::int64_t row = 0; row < c.rows; ++row) {
    for (std::int64_t i = 0; i < c.length; ++i) {
      ran.x.set(row, i, normal(random));
      ran.residual.set(row, i, normal(random));
      if (row == 0) ran.weight.set(0, i, 1 + normal(random) / 4);
    }
  }
  AddRmsNormProblem::Rows weight = ran.weight.read();
  weight.row_stride = 0;
  add_rms_norm({.rows = c.rows,
                .length = c.length,
                .x = ran.x.read(),
                .residual = ran.residual.read(),
                .weight = weight,
                .sum = ran.sum.write(),
                .y = ran.y.write(),
                .epsilon = kEpsilon});
  return ran;
}

void expect_right(const Case& c, const Ran& ran) {
  const double state = c.dtype == DType::F64 ? 0x1p-53 : 0x1p-24;
  for (std::int64_t row = 0; row < c.rows; ++row) {
    long double squares = 0;
    for (std::int64_t i = 0; i < c.length; ++i) {
      const double exact = ran.x.at(row, i) + ran.residual.at(row, i);
      const double sum = ran.sum.at(row, i);
      EXPECT_NEAR(sum, exact, std::abs(exact) * (unit_roundoff(c.sum_dtype) + 2 * state) + 1e-300);
      squares += static_cast<long double>(sum) * sum;
    }
    const double root =
        std::sqrt(static_cast<double>(squares) / static_cast<double>(c.length) + kEpsilon);
    for (std::int64_t i = 0; i < c.length; ++i) {
      const double exact = ran.sum.at(row, i) / root * ran.weight.at(0, i);
      const double terms = 8 + std::sqrt(static_cast<double>(c.length));
      EXPECT_NEAR(ran.y.at(row, i), exact,
                  std::abs(exact) * (unit_roundoff(c.dtype) + terms * state) + 1e-300)
          << print(c.dtype) << " of " << c.length << ", row " << row << ", element " << i;
    }
  }
}

TEST(AddRmsNorm, normalises_the_sums_that_it_stores) {
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16, DType::F64}) {
    for (const std::int64_t length : {1, 7, 8, 513, 2100, 4096}) {
      for (const std::int64_t step : {1, 2}) {
        const Case c{dtype, dtype, 3, length, step};
        expect_right(c, run(c, static_cast<std::uint64_t>(length)));
      }
    }
  }
  const Case wider{DType::BF16, DType::F32, 2, 300, 1};
  expect_right(wider, run(wider, 5));
}

TEST(AddRmsNorm, touches_nothing_between_rows) {
  const Case c{DType::BF16, DType::BF16, 2, 9, 1};
  const Ran ran = run(c, 1);
  for (std::int64_t i = c.length; i < ran.y.row_stride; ++i) {
    EXPECT_EQ(ran.y.at(0, i), 0);
    EXPECT_EQ(ran.sum.at(1, i), 0);
  }
}

TEST(AddRmsNorm, of_rows_of_nothing_is_nothing) {
  Rows none(DType::F32, 1, 4, 1);
  Rows weight(DType::F32, 1, 4, 1);
  for (std::int64_t i = 0; i < 4; ++i) weight.set(0, i, 2);
  Rows sum(DType::F32, 1, 4, 1);
  Rows y(DType::F32, 1, 4, 1);
  add_rms_norm({.rows = 1,
                .length = 4,
                .x = none.read(),
                .residual = none.read(),
                .weight = weight.read(),
                .sum = sum.write(),
                .y = y.write(),
                .epsilon = kEpsilon});
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(y.at(0, i), 0);
}

}  // namespace
}  // namespace add_rms_norm_test
}  // namespace harpe
