// Multiplies two matrices on four CPU ranks, each of which computes a part of the sum, and compares
// the result with a loop.
#include <harpe/harpe.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace {

constexpr std::int64_t kRows = 64, kColumns = 48, kDepth = 96;

std::vector<float> make_matrix(std::int64_t rows, std::int64_t columns, double step) {
  std::vector<float> matrix(static_cast<std::size_t>(rows * columns));
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    matrix[i] = static_cast<float>(std::sin(step * static_cast<double>(i)));
  }
  return matrix;
}

double largest_error(const float* a, const float* b, const float* c) {
  double largest = 0;
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t column = 0; column < kColumns; ++column) {
      double sum = 0;
      for (std::int64_t k = 0; k < kDepth; ++k) {
        sum += double{a[row * kDepth + k]} * b[k * kColumns + column];
      }
      largest = std::max(largest, std::abs(sum - c[row * kColumns + column]));
    }
  }
  return largest;
}

}  // namespace

int main() {
  using harpe::dense, harpe::DType;
  const auto plan =
      harpe::plan({.op = "gemm_rs",
                   .parameters = {{"m", kRows}, {"n", kColumns}, {"k", kDepth}, {"dtype", "f32"}},
                   .mesh = "tp=4"});
  if (!plan) return std::puts(plan.error().text.c_str()), 1;
  std::printf("%s: %s\n", plan->facts().schedule.c_str(), plan->why().text.c_str());

  const std::vector<float> a = make_matrix(kRows, kDepth, 0.7);
  const std::vector<float> b = make_matrix(kDepth, kColumns, 1.3);
  std::vector<float> c(kRows * kColumns);
  const auto result = harpe::run(*plan,
                                 {{"a", dense(a.data(), DType::F32, {kRows, kDepth})},
                                  {"b", dense(b.data(), DType::F32, {kDepth, kColumns})}},
                                 {{"c", dense(c.data(), DType::F32, {kRows, kColumns})}});
  if (!result) return std::puts(result.error().text.c_str()), 1;
  const double error = largest_error(a.data(), b.data(), c.data());
  std::printf("largest error %.1e, %.0f us\n", error, result->times_us.front());
  return error < 1e-4 ? 0 : 1;
}
