#pragma once

#include "exec/cuda/kernels/gemm/gemm.h"
#include "exec/cuda/kernels/kernel_binding.h"

namespace harpe::cuda {

// Combines the GEMMs that the kernel's tasks would launch alone into one. Errors: G092.
[[nodiscard]] Checked<GemmSpec> bind_gemm(const KernelBinding& binding);

}  // namespace harpe::cuda
