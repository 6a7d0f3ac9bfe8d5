#include "exec/cpu/kernels/softmax_gradient.h"

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
[[gnu::always_inline]] inline std::int64_t seen_by(const GradientTile<Real>& tile,
                                                   std::int64_t row) {
  const bool nothing = tile.lse[row] == -std::numeric_limits<Real>::infinity();
  return nothing ? 0 : visible_columns(tile, row);
}

template <class Real>
[[gnu::always_inline]] inline void differentiate_row(const GradientTile<Real>& tile,
                                                     std::int64_t index) {
  constexpr Real kLargest = 88;  // exponentiate takes no more; a consistent lse leaves 0 at most
  constexpr std::int64_t kLanes = 64 / static_cast<std::int64_t>(sizeof(Real));
  Real* weights = tile.weights + index * tile.stride;
  Real* gradients = tile.gradients + index * tile.stride;
  const std::int64_t seen = seen_by(tile, index);
  std::fill(weights + seen, weights + tile.stride, Real{0});
  std::fill(gradients + seen, gradients + tile.stride, Real{0});
  const Lanes<Real> infinity = Lanes<Real>{} + std::numeric_limits<Real>::infinity();
  for (std::int64_t i = 0; i < seen; i += kLanes) {
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
  const std::int64_t touched = (seen + kLanes - 1) / kLanes * kLanes;
  std::fill(weights + seen, weights + touched, Real{0});
  std::fill(gradients + seen, gradients + touched, Real{0});
}

HP_CLONES void differentiate_f32(const GradientTile<float>& tile) {
  for (std::int64_t row = 0; row < tile.rows; ++row) differentiate_row(tile, row);
}
HP_CLONES void differentiate_f64(const GradientTile<double>& tile) {
  for (std::int64_t row = 0; row < tile.rows; ++row) differentiate_row(tile, row);
}

}  // namespace

std::int64_t seen_columns(const GradientTile<float>& tile, std::int64_t row) {
  return seen_by(tile, row);
}
std::int64_t seen_columns(const GradientTile<double>& tile, std::int64_t row) {
  return seen_by(tile, row);
}
void differentiate_softmax(const GradientTile<float>& tile) { differentiate_f32(tile); }
void differentiate_softmax(const GradientTile<double>& tile) { differentiate_f64(tile); }

}  // namespace harpe
