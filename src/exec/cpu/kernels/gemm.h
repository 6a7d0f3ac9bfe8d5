#pragma once

#include <cstdint>
#include <string_view>

#include "ir/dtype.h"

namespace harpe {

// A matrix in memory by its element strides, one of which is 1.
struct MatrixView {
  const void* data = nullptr;
  DType dtype = DType::F32;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 1;
};

// c[m, n] = (accumulate ? c : 0) + a[m, k] * b[k, n]. c is row-major, f32 (f64 when a and b are
// f64).
struct GemmProblem {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  MatrixView a;
  MatrixView b;
  void* c = nullptr;
  std::int64_t c_row_stride = 0;
  bool accumulate = false;
};

// Products of f16 and bf16 operands are summed in f32; bf16 operands below 2^-126 may count as 0.
// Requires: a and b of equal dtype among f16, bf16, f32, f64; c overlaps neither.
// Keeps: single-threaded, re-entrant, and bitwise the same for the same shape, strides and values.
void multiply(const GemmProblem& problem);

// Who multiplies operands of this type on this machine: "oneDNN", "OpenBLAS" or "own loops", and
// whether as they are ("bf16") or widened first ("f32").
struct GemmBackend {
  std::string_view library;
  DType operands = DType::F32;
};
[[nodiscard]] GemmBackend gemm_backend(DType dtype);

}  // namespace harpe
