#pragma once

#include <cstdint>

#include "exec/cpu/kernels/gemm.h"

namespace harpe {

// A matrix in the form libraries need: rows of `stride` elements, of the matrix or of its
// transpose.
template <class T>
struct DenseView {
  const T* data = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;
};

template <class T, class C>
struct DenseGemm {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  DenseView<T> a;
  DenseView<T> b;
  C* c = nullptr;
  std::int64_t c_row_stride = 0;
  bool accumulate = false;
};

using GemmF32 = DenseGemm<float, float>;
using GemmF64 = DenseGemm<double, double>;
using GemmBF16 = DenseGemm<std::uint16_t, float>;

// Requires: m, n, k > 0.
void multiply_dense(const GemmF32& problem, Products products);
void multiply_dense(const GemmF64& problem, Products products);
// Requires: gemm_backend(BF16, products).operands is BF16.
void multiply_dense(const GemmBF16& problem, Products products);

// Harpe's own blocked kernel, for machines without a fitting library.
void multiply_loops(const GemmF32& problem);
void multiply_loops(const GemmF64& problem);

}  // namespace harpe
