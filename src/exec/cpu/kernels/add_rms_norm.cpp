#include "exec/cpu/kernels/add_rms_norm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "exec/cpu/kernels/widened.h"

namespace harpe {
namespace {

constexpr std::int64_t kNormRun = 8;
constexpr std::size_t kNormChains = 256;
constexpr std::size_t kNormWarp = 32;     // chains of one tree; trees are added in order
constexpr std::int64_t kNormChunk = 512;  // elements worked on at a time; a multiple of kNormRun

using NormRows = AddRmsNormProblem::Rows;

template <class Real>
using NormChunk = std::array<Real, kNormChunk>;

const void* norm_row(const void* data, DType dtype, std::int64_t row_stride, std::int64_t row) {
  return static_cast<const std::byte*>(data) + row * row_stride * size_in_bytes(dtype);
}
void* norm_row(void* data, DType dtype, std::int64_t row_stride, std::int64_t row) {
  return static_cast<std::byte*>(data) + row * row_stride * size_in_bytes(dtype);
}

template <class Real>
void widen(const NormRows& rows, std::int64_t row, std::int64_t first, std::int64_t n,
           Real* values) {
  widen(norm_row(rows.data, rows.dtype, rows.row_stride, row), rows.dtype, rows.stride, first, n,
        values);
}

template <class Real>
Real add_chains(std::array<Real, kNormChains>& chains) {
  for (std::size_t tree = 0; tree < kNormChains; tree += kNormWarp) {
    for (std::size_t half = kNormWarp / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) chains[tree + i] += chains[tree + i + half];
    }
  }
  Real sum = 0;
  for (std::size_t tree = 0; tree < kNormChains; tree += kNormWarp) sum += chains[tree];
  return sum;
}

// Stores the row's sums and returns the sum of their squares.
template <class Real>
Real add_residual(const AddRmsNormProblem& p, std::int64_t row) {
  std::array<Real, kNormChains> chains{};
  NormChunk<Real> values;
  NormChunk<Real> others;
  void* const sums = norm_row(p.sum.data, p.sum.dtype, p.sum.row_stride, row);
  for (std::int64_t first = 0; first < p.length; first += kNormChunk) {
    const std::int64_t n = std::min(kNormChunk, p.length - first);
    widen(p.x, row, first, n, values.data());
    widen(p.residual, row, first, n, others.data());
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) values[i] += others[i];
    narrow(sums, p.sum.dtype, p.sum.stride, first, n, values.data());
    widen(sums, p.sum.dtype, p.sum.stride, first, n, values.data());
    for (std::int64_t i = 0; i < n; ++i) {
      const Real value = values[static_cast<std::size_t>(i)];
      chains[static_cast<std::size_t>((first + i) / kNormRun) % kNormChains] += value * value;
    }
  }
  return add_chains(chains);
}

template <class Real>
void normalise_row(const AddRmsNormProblem& p, std::int64_t row, Real scale) {
  NormChunk<Real> values;
  NormChunk<Real> weights;
  const void* const sums =
      norm_row(static_cast<const void*>(p.sum.data), p.sum.dtype, p.sum.row_stride, row);
  void* const to = norm_row(p.y.data, p.y.dtype, p.y.row_stride, row);
  for (std::int64_t first = 0; first < p.length; first += kNormChunk) {
    const std::int64_t n = std::min(kNormChunk, p.length - first);
    widen(sums, p.sum.dtype, p.sum.stride, first, n, values.data());
    widen(p.weight, 0, first, n, weights.data());
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      values[i] = values[i] * scale * weights[i];
    }
    narrow(to, p.y.dtype, p.y.stride, first, n, values.data());
  }
}

template <class Real>
void normalise_in(const AddRmsNormProblem& p) {
  for (std::int64_t row = 0; row < p.rows; ++row) {
    const Real mean = add_residual<Real>(p, row) / static_cast<Real>(p.length);
    normalise_row(p, row, 1 / std::sqrt(mean + static_cast<Real>(p.epsilon)));
  }
}

}  // namespace

void add_rms_norm(const AddRmsNormProblem& problem) {
  const auto is_wide = [](const NormRows& rows) { return rows.dtype == DType::F64; };
  const bool wide = is_wide(problem.x) || is_wide(problem.residual) || is_wide(problem.weight);
  if (wide) return normalise_in<double>(problem);
  normalise_in<float>(problem);
}

}  // namespace harpe
