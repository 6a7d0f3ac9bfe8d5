#include "exec/cpu/kernels/softmax_backward.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "exec/cpu/kernels/exponential.h"
#include "exec/cpu/kernels/softmax.h"
#include "support/multiversion.h"

namespace harpe {
namespace {

template <class Real>
using Lanes = std::conditional_t<std::is_same_v<Real, float>, F32Lanes, F64Lanes>;

template <class Real>
[[gnu::always_inline]] inline void differentiate_row(const BackwardTile<Real>& tile,
                                                     std::int64_t index) {
  constexpr Real kLargest = 88;  // the limit of exponentiate; a consistent lse gives at most 0
  constexpr std::int64_t kLanes = 64 / static_cast<std::int64_t>(sizeof(Real));
  Real* weights = tile.weights + index * tile.stride;
  Real* gradients = tile.gradients + index * tile.stride;
  const ColumnRun whole{0, tile.columns};
  const std::span<const ColumnRun> runs = seen_runs(tile, index, whole);
  const std::int64_t begin = runs.empty() ? 0 : runs.front().begin / kLanes * kLanes;
  const std::int64_t end = runs.empty() ? 0 : (runs.back().end + kLanes - 1) / kLanes * kLanes;
  const Lanes<Real> infinity = Lanes<Real>{} + std::numeric_limits<Real>::infinity();
  for (std::int64_t i = begin; i < end; i += kLanes) {
    auto& weight = *reinterpret_cast<Lanes<Real>*>(weights + i);
    auto& gradient = *reinterpret_cast<Lanes<Real>*>(gradients + i);
    const Lanes<Real> exponent = weight * tile.scale - tile.lse[index];
    weight = exponent;
    exponentiate(weight);
    if constexpr (std::is_same_v<Real, float>) {
      weight = exponent > kLargest ? infinity : weight;
    }
    gradient = weight * (gradient - tile.delta[index]) * tile.scale;
  }
  fill_hidden(weights, runs, 0, tile.stride, Real{0});
  fill_hidden(gradients, runs, 0, tile.stride, Real{0});
}

HP_CLONES void differentiate_f32(const BackwardTile<float>& tile) {
  for (std::int64_t row = 0; row < tile.rows; ++row) differentiate_row(tile, row);
}
HP_CLONES void differentiate_f64(const BackwardTile<double>& tile) {
  for (std::int64_t row = 0; row < tile.rows; ++row) differentiate_row(tile, row);
}

}  // namespace

void differentiate_softmax(const BackwardTile<float>& tile) { differentiate_f32(tile); }
void differentiate_softmax(const BackwardTile<double>& tile) { differentiate_f64(tile); }

}  // namespace harpe
