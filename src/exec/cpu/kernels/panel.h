#pragma once

#include <cstdint>
#include <type_traits>

#include "exec/cpu/kernels/gemm.h"
#include "exec/cpu/kernels/gemm_dense.h"

namespace harpe {

template <class Real>
constexpr DType kDTypeOf = std::is_same_v<Real, double> ? DType::F64 : DType::F32;

// The part of a matrix that begins at (row, column).
[[nodiscard]] MatrixView part(const MatrixView& view, std::int64_t row, std::int64_t column);

// The first rows x columns of `view` in place, if libraries can use that layout; else null data
// (for example, if strides are too short for the extents).
template <class T>
[[nodiscard]] DenseView<T> as_dense(const MatrixView& view, std::int64_t rows,
                                    std::int64_t columns);

// The first rows x columns of `view`, converted to T and packed into `memory` (rows * columns),
// rows or columns contiguous as they are in `view`.
template <class T>
[[nodiscard]] DenseView<T> pack(const MatrixView& view, std::int64_t rows, std::int64_t columns,
                                T* memory);

// The same, but rows are always contiguous.
template <class T>
[[nodiscard]] DenseView<T> pack_rows(const MatrixView& view, std::int64_t rows,
                                     std::int64_t columns, T* memory);

}  // namespace harpe
