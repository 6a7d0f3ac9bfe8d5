#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "exec/cpu/kernels/panel.h"
#include "exec/cpu/kernels/scratch.h"

namespace harpe {

// What the attention kernels' blocks of queries and keys share.

// Scores of 128 x 512 are 256 KiB of f32: with a tile of K and V they stay in the L2 cache.
constexpr std::int64_t kQueryBlock = 128;
constexpr std::int64_t kKeyBlock = 512;

template <class Real>
constexpr Real kNone = -std::numeric_limits<Real>::infinity();

template <class Real>
MatrixView as_view(const DenseView<Real>& dense) {
  return {.data = dense.data,
          .dtype = kDTypeOf<Real>,
          .row_stride = dense.transposed ? 1 : dense.stride,
          .column_stride = dense.transposed ? dense.stride : 1};
}

[[nodiscard]] inline MatrixView transposed(const MatrixView& view) {
  return {.data = view.data,
          .dtype = view.dtype,
          .row_stride = view.column_stride,
          .column_stride = view.row_stride};
}

// The first rows x columns of `view` in the type that `multiply` uses, so that it need not widen
// them.
template <class Real>
MatrixView ready(const MatrixView& view, std::int64_t rows, std::int64_t columns, Scratch purpose,
                 Products products) {
  if (view.dtype == gemm_backend(view.dtype, products).operands) return view;
  return as_view(pack(view, rows, columns, scratch_of<Real>(purpose, rows * columns)));
}

// The same in Real with contiguous rows, for GEMMs with computed values.
template <class Real>
DenseView<Real> widened(const MatrixView& view, std::int64_t rows, std::int64_t columns,
                        Scratch purpose) {
  if (view.dtype == kDTypeOf<Real> && view.column_stride == 1) {
    return {static_cast<const Real*>(view.data), view.row_stride, false};
  }
  return pack_rows(view, rows, columns, scratch_of<Real>(purpose, rows * columns));
}

template <class Real>
bool all_finite(const Real* data, std::int64_t stride, std::int64_t rows, std::int64_t columns) {
  bool finite = true;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < columns; ++i) {
      finite = finite && std::isfinite(data[row * stride + i]);
    }
  }
  return finite;
}

}  // namespace harpe
