#pragma once

#include "exec/cuda/kernels/gemm/gemm.h"

// Specs that tests of the GEMM kernels begin with.
namespace harpe::cuda::gemm_test {

inline constexpr int kMultiprocessors = 132;

inline GemmSpec product(std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmSpec spec{.n = n, .k = k, .b = 4096, .b_stride = n};
  spec.panels = {{.rows = m,
                  .k_chunks = {{.a = 4096, .stride = k, .k_begin = 0, .k_count = k}},
                  .c = 4096,
                  .c_stride = n}};
  return spec;
}

}  // namespace harpe::cuda::gemm_test
