#pragma once

#include "exec/cuda/kernels/gemm/gemm.h"
#include "exec/cuda/kernels/strided_array.h"

namespace harpe::cuda {

// The operands and the result of a GEMM as arrays of rows, then columns. array_b is the B of the K
// chunk; with KMajor its rows run along N.
[[nodiscard]] StridedArray array_a(const GemmSpec& spec, const GemmPanelSpec& panel,
                                   const GemmKChunkSpec& k_chunk);
[[nodiscard]] StridedArray array_b(const GemmSpec& spec, const GemmPanelSpec& panel,
                                   const GemmKChunkSpec& k_chunk);
[[nodiscard]] StridedArray array_c(const GemmSpec& spec, const GemmPanelSpec& panel);

}  // namespace harpe::cuda
