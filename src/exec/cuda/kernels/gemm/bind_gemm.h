#pragma once

#include "exec/cuda/kernels/gemm/gemm.h"
#include "exec/cuda/kernels/kernel_binding.h"

namespace harpe::cuda {

// The GEMM that the launches alone make up. Errors: G092.
[[nodiscard]] Checked<GemmSpec> bind_gemm(const KernelBinding& binding);

}  // namespace harpe::cuda
