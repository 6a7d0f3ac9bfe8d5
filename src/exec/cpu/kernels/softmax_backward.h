#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "exec/cpu/kernels/seen_columns.h"

namespace harpe {

// A tile to turn from q k^T and do v^T into probabilities p and gradients of the scores.
template <class Real>
struct BackwardTile {
  Real* weights = nullptr;    // rows x stride: q k^T in, p out; 64-byte aligned
  Real* gradients = nullptr;  // rows x stride: do v^T in, scale * p * (do v^T - delta) out; aligned
  std::int64_t stride = 0;    // a multiple of softmax_padding<Real>
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  const SeenColumns* seen = nullptr;
  Real scale = 1;
  const Real* lse = nullptr;  // per row; a row with -inf sees no key
  const Real* delta = nullptr;
};

// The columns that a row sees; none if its lse is -inf.
template <class Real>
[[nodiscard]] std::span<const ColumnRun> seen_runs(const BackwardTile<Real>& tile, std::int64_t row,
                                                   const ColumnRun& whole) {
  if (tile.lse[row] == -std::numeric_limits<Real>::infinity()) return {};
  return tile.seen->all() ? std::span(&whole, 1) : tile.seen->of(row);
}

// p = e^(scale * q k^T - lse) for visible pairs; for hidden pairs both results are 0 in any case.
void differentiate_softmax(const BackwardTile<float>& tile);
void differentiate_softmax(const BackwardTile<double>& tile);

}  // namespace harpe
