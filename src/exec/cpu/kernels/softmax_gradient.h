#pragma once

#include <cstdint>

namespace harpe {

// A tile on its way from q k^T and do v^T to probabilities p and gradients of the scores.
template <class Real>
struct GradientTile {
  Real* weights = nullptr;    // rows x stride: q k^T in, p out; 64-byte aligned
  Real* gradients = nullptr;  // rows x stride: do v^T in, scale * p * (do v^T - delta) out; aligned
  std::int64_t stride = 0;    // a multiple of softmax_padding<Real>
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t visible = 0;  // row i sees the first clamp(visible + i * slope, 0, columns)
  std::int64_t slope = 0;
  Real scale = 1;
  const Real* lse = nullptr;  // per row; a row of -inf sees nothing
  const Real* delta = nullptr;
};

// How many columns a row sees, its lse considered.
[[nodiscard]] std::int64_t seen_columns(const GradientTile<float>& tile, std::int64_t row);
[[nodiscard]] std::int64_t seen_columns(const GradientTile<double>& tile, std::int64_t row);

// p = e^(scale * q k^T - lse) where seen, else both results are 0 whatever was there.
void differentiate_softmax(const GradientTile<float>& tile);
void differentiate_softmax(const GradientTile<double>& tile);

}  // namespace harpe
