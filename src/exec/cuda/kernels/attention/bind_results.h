#pragma once

#include "exec/cuda/kernels/attention/attention.h"
#include "exec/cuda/kernels/kernel_binding.h"

namespace harpe::cuda {

// Whether the kernel stores heads at several places, or combines them with states that other ranks
// have stored (AttentionSpec::results).
[[nodiscard]] bool has_results(const launch::Kernel& kernel);

// bind_attention for such a kernel, which runs one task's attention. Errors: G092, also if the
// kernel for few queries cannot run it.
[[nodiscard]] Checked<AttentionSpec> bind_results(const KernelBinding& binding);

}  // namespace harpe::cuda
