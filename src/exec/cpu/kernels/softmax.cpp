#include "exec/cpu/kernels/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "exec/cpu/kernels/exponential.h"
#include "support/multiversion.h"

namespace harpe {
namespace {

template <class Real>
using Lanes = std::conditional_t<std::is_same_v<Real, float>, F32Lanes, F64Lanes>;
template <class Real>
constexpr std::int64_t kLanes = 64 / static_cast<std::int64_t>(sizeof(Real));
template <class Real>
constexpr Real kNone = -std::numeric_limits<Real>::infinity();

constexpr int kUnroll = 4;  // independent chains, to hide the latency of max and add

// Scales a row in place; returns its largest element, ignoring NaN.
template <class Real>
[[gnu::always_inline]] inline Real scale_row(Real* row, std::int64_t n, Real scale) {
  Lanes<Real> best[kUnroll];
  for (auto& lanes : best) lanes = Lanes<Real>{} + kNone<Real>;
  for (std::int64_t i = 0; i < n; i += kUnroll * kLanes<Real>) {
#pragma GCC unroll 4
    for (int u = 0; u < kUnroll; ++u) {
      auto& lanes = *reinterpret_cast<Lanes<Real>*>(row + i + u * kLanes<Real>);
      lanes *= scale;
      best[u] = lanes > best[u] ? lanes : best[u];
    }
  }
  Real most = kNone<Real>;
  for (const auto& lanes : best) {
    for (int lane = 0; lane < kLanes<Real>; ++lane) most = std::max(most, lanes[lane]);
  }
  return most;
}

// row = e^(row - shift); returns the sum.
template <class Real>
[[gnu::always_inline]] inline Real exponentiate_row(Real* row, std::int64_t n, Real shift) {
  Lanes<Real> sums[kUnroll] = {};
  for (std::int64_t i = 0; i < n; i += kUnroll * kLanes<Real>) {
#pragma GCC unroll 4
    for (int u = 0; u < kUnroll; ++u) {
      auto& lanes = *reinterpret_cast<Lanes<Real>*>(row + i + u * kLanes<Real>);
      lanes -= shift;
      exponentiate(lanes);
      sums[u] += lanes;
    }
  }
  const Lanes<Real> sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  Real total = 0;
  for (int lane = 0; lane < kLanes<Real>; ++lane) total += sum[lane];
  return total;
}

template <class Real>
[[gnu::always_inline]] inline void rescale(Real* __restrict o, std::int64_t n, Real factor) {
  if (factor == 1) return;
  for (std::int64_t i = 0; i < n; ++i) o[i] *= factor;
}

template <class Real>
[[gnu::always_inline]] inline void update_row(const SoftmaxTile<Real>& tile, std::int64_t index) {
  Real* row = tile.scores + index * tile.stride;
  const ColumnRun whole{0, tile.columns};
  const std::span<const ColumnRun> runs =
      tile.seen->all() ? std::span(&whole, 1) : tile.seen->of(index);
  if (runs.empty()) {
    std::fill_n(row, tile.columns, Real{0});
    return;
  }
  constexpr std::int64_t kUnit = softmax_padding<Real>;
  const std::int64_t begin = runs.front().begin / kUnit * kUnit;
  const std::int64_t end = (runs.back().end + kUnit - 1) / kUnit * kUnit;
  std::fill(row, row + begin, Real{0});
  // Hidden columns first repeat a visible score, then get weight 0. (-inf from the start would
  // fail: a scale of 0 makes it NaN, a negative scale +inf.)
  fill_hidden(row, runs, begin, end, row[runs.front().begin]);
  const Real most = scale_row(row + begin, end - begin, tile.scale);
  fill_hidden(row, runs, begin, end, kNone<Real>);

  const Real before = tile.max[index];
  const Real after = most > before ? most : before;  // a NaN in `before` stays
  const Real shift = after == kNone<Real> ? Real{0} : after;
  const Real factor = before == kNone<Real> ? Real{0} : std::exp(before - shift);
  tile.max[index] = after;
  tile.sum[index] = tile.sum[index] * factor + exponentiate_row(row + begin, end - begin, shift);
  if (end < tile.columns) std::fill(row + end, row + tile.columns, Real{0});
  if (!tile.first) rescale(tile.o + index * tile.value_dim, tile.value_dim, factor);
}

HP_CLONES void update_f32(const SoftmaxTile<float>& tile) {
  for (std::int64_t row = 0; row < tile.rows; ++row) update_row(tile, row);
}
HP_CLONES void update_f64(const SoftmaxTile<double>& tile) {
  for (std::int64_t row = 0; row < tile.rows; ++row) update_row(tile, row);
}

HP_CLONES void exponentials_f32(float* out, const float* in, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += kLanes<float>) {
    F32Lanes x = *reinterpret_cast<const F32Lanes*>(in + i);
    exponentiate(x);
    *reinterpret_cast<F32Lanes*>(out + i) = x;
  }
}

}  // namespace

void update_softmax(const SoftmaxTile<float>& tile) { update_f32(tile); }
void update_softmax(const SoftmaxTile<double>& tile) { update_f64(tile); }
void exponentials(float* out, const float* in, std::int64_t n) { exponentials_f32(out, in, n); }

}  // namespace harpe
