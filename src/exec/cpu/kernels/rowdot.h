#pragma once

#include <cstdint>

#include "ir/dtype.h"

namespace harpe {

// c[row] = sum over i of a[row, i] b[row, i], rounded once to c's type. Strides in elements.
struct RowDotProblem {
  struct Rows {
    const void* data = nullptr;
    std::int64_t row_stride = 0;
    std::int64_t stride = 1;
  };
  std::int64_t rows = 0;
  std::int64_t length = 0;
  DType dtype = DType::F32;  // of a and b
  Rows a;
  Rows b;
  void* c = nullptr;
  DType c_dtype = DType::F32;
  std::int64_t c_stride = 1;
};

// Summed in f32, or f64 for f64 operands. Requires: floating types.
void multiply_rows(const RowDotProblem& problem);

}  // namespace harpe
