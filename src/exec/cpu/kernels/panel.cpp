#include "exec/cpu/kernels/panel.h"

#include <algorithm>
#include <cstddef>

#include "exec/cpu/kernels/elementwise.h"

namespace harpe {
namespace {

MatrixView transpose(const MatrixView& view) {
  return {.data = view.data,
          .dtype = view.dtype,
          .row_stride = view.column_stride,
          .column_stride = view.row_stride};
}

}  // namespace

MatrixView part(const MatrixView& view, std::int64_t row, std::int64_t column) {
  MatrixView out = view;
  out.data = static_cast<const std::byte*>(view.data) +
             (row * view.row_stride + column * view.column_stride) * size_in_bytes(view.dtype);
  return out;
}

template <class T>
DenseView<T> as_dense(const MatrixView& view, std::int64_t rows, std::int64_t columns) {
  const T* data = static_cast<const T*>(view.data);
  // The stride along an extent of 1 is not used, so any sufficient value will do.
  if ((view.column_stride == 1 || columns == 1) && (view.row_stride >= columns || rows == 1)) {
    return {.data = data, .stride = std::max(view.row_stride, columns), .transposed = false};
  }
  if ((view.row_stride == 1 || rows == 1) && (view.column_stride >= rows || columns == 1)) {
    return {.data = data, .stride = std::max(view.column_stride, rows), .transposed = true};
  }
  return {};
}

template <class T>
DenseView<T> pack(const MatrixView& view, std::int64_t rows, std::int64_t columns, T* memory) {
  if (view.column_stride != 1 && view.row_stride == 1) {
    DenseView<T> out = pack_rows(transpose(view), columns, rows, memory);
    out.transposed = true;
    return out;
  }
  return pack_rows(view, rows, columns, memory);
}

template <class T>
DenseView<T> pack_rows(const MatrixView& view, std::int64_t rows, std::int64_t columns, T* memory) {
  for (std::int64_t row = 0; row < rows; ++row) {
    T* out = memory + row * columns;
    if (view.column_stride == 1) {
      convert(out, kDTypeOf<T>, part(view, row, 0).data, view.dtype, columns);
      continue;
    }
    for (std::int64_t column = 0; column < columns; ++column) {
      convert(out + column, kDTypeOf<T>, part(view, row, column).data, view.dtype, 1);
    }
  }
  return {.data = memory, .stride = columns, .transposed = false};
}

template DenseView<float> as_dense(const MatrixView&, std::int64_t, std::int64_t);
template DenseView<double> as_dense(const MatrixView&, std::int64_t, std::int64_t);
template DenseView<std::uint16_t> as_dense(const MatrixView&, std::int64_t, std::int64_t);
template DenseView<float> pack(const MatrixView&, std::int64_t, std::int64_t, float*);
template DenseView<double> pack(const MatrixView&, std::int64_t, std::int64_t, double*);
template DenseView<float> pack_rows(const MatrixView&, std::int64_t, std::int64_t, float*);
template DenseView<double> pack_rows(const MatrixView&, std::int64_t, std::int64_t, double*);

}  // namespace harpe
