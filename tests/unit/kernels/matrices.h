#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "exec/cpu/kernels/gemm.h"
#include "ir/tensor.h"

namespace harpe {

// A random matrix in a larger allocation, with contiguous rows or columns. The gaps between them
// hold NaN, so that a kernel that reads a gap gives NaN.
class Matrix {
 public:
  Matrix(DType dtype, std::int64_t rows, std::int64_t columns, bool transposed, std::int64_t gap,
         std::uint64_t seed)
      : row_stride_(transposed ? 1 : columns + gap), column_stride_(transposed ? rows + gap : 1) {
    tensor_ = random_tensor(dtype, {(rows + gap) * (columns + gap)}, seed, "matrix");
    if (!is_floating(dtype)) return;
    std::vector<bool> used(static_cast<std::size_t>(element_count(tensor_)));
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        used[static_cast<std::size_t>(index(row, column))] = true;
      }
    }
    for (std::int64_t i = 0; i < element_count(tensor_); ++i) {
      if (!used[static_cast<std::size_t>(i)]) store(tensor_, i, std::nan(""));
    }
  }

  [[nodiscard]] MatrixView view() const {
    return {.data = tensor_.data.data(),
            .dtype = tensor_.dtype,
            .row_stride = row_stride_,
            .column_stride = column_stride_};
  }
  [[nodiscard]] double at(std::int64_t row, std::int64_t column) const {
    return load(tensor_, index(row, column));
  }
  void set(std::int64_t row, std::int64_t column, double value) {
    store(tensor_, index(row, column), value);
  }
  [[nodiscard]] void* data() { return tensor_.data.data(); }
  [[nodiscard]] std::int64_t row_stride() const { return row_stride_; }
  [[nodiscard]] const HostTensor& tensor() const { return tensor_; }

 private:
  [[nodiscard]] std::int64_t index(std::int64_t row, std::int64_t column) const {
    return row * row_stride_ + column * column_stride_;
  }
  std::int64_t row_stride_;
  std::int64_t column_stride_;
  HostTensor tensor_;
};

// True if all bytes are equal, including those of NaN.
inline bool same_bits(const HostTensor& a, const HostTensor& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.data == b.data;
}

}  // namespace harpe
