#pragma once

#include <vector>

#include "bench/cuda/gemm_case.h"

namespace harpe::bench {

// 8192 cubed, and what one of 8 GPUs computes in the products of a large model: after an all-gather
// (N is cut) or before a reduce-scatter (K is cut). bf16.
[[nodiscard]] std::vector<GemmCase> gemm_shapes();

// A product, a bias and a gelu: what one of 2, 4 or 8 GPUs computes of the layers of large models.
[[nodiscard]] std::vector<GemmCase> mapped_shapes();

// What one of 2, 4 or 8 GPUs computes in the layers of large models for few rows, and odd shapes: B
// with rows along n, some also along k. bf16.
[[nodiscard]] std::vector<GemmCase> few_rows_shapes();

}  // namespace harpe::bench
