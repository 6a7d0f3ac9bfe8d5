#pragma once

#include "exec/cuda/kernels/gemm/gemm.h"
#include "exec/cuda/kernels/strided_array.h"

namespace harpe::cuda {

// The operands and results of a GEMM: rows of A, B and C, then their columns. B is what
// the K chunk meets; with KMajor its rows run along N.
[[nodiscard]] StridedArray array_a(const GemmSpec& spec, const GemmPanelSpec& panel,
                                   const GemmPieceSpec& piece);
[[nodiscard]] StridedArray array_b(const GemmSpec& spec, const GemmPanelSpec& panel,
                                   const GemmPieceSpec& piece);
[[nodiscard]] StridedArray array_c(const GemmSpec& spec, const GemmPanelSpec& panel);

}  // namespace harpe::cuda
