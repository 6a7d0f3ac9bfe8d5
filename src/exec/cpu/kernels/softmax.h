#pragma once

#include <cstdint>

#include "exec/cpu/kernels/seen_columns.h"

namespace harpe {

// A tile of scores to turn into probabilities, and the running state of its rows: `max` and `sum`
// over the keys so far, `o` the sum of their values weighted relative to `max`.
template <class Real>
struct SoftmaxTile {
  Real* scores = nullptr;   // rows x stride: q k^T in, probabilities out; 64-byte aligned
  std::int64_t stride = 0;  // a multiple of softmax_padding<Real>
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  const SeenColumns* seen = nullptr;
  Real scale = 1;
  Real* max = nullptr;
  Real* sum = nullptr;
  Real* o = nullptr;  // rows x value_dim
  std::int64_t value_dim = 0;
  bool first = false;  // o has no value yet and is not touched
};

// Rows are processed in units of four 64-byte vectors.
template <class Real>
constexpr std::int64_t softmax_padding = 256 / static_cast<std::int64_t>(sizeof(Real));

// Turns scores into e^(scale * score - max), 0 where not visible, and updates max, sum and o. o
// then lacks only the product of this tile's probabilities and its values.
void update_softmax(const SoftmaxTile<float>& tile);
void update_softmax(const SoftmaxTile<double>& tile);

// out[i] = e^in[i] as update_softmax computes it. Requires: n a multiple of 16, 64-byte aligned.
void exponentials(float* out, const float* in, std::int64_t n);

}  // namespace harpe
