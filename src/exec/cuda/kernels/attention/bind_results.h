#pragma once

#include "exec/cuda/kernels/attention/attention.h"
#include "exec/cuda/kernels/kernel_binding.h"

namespace harpe::cuda {

// Whether heads of the kernel's queries go to several places, or are added up with what others have
// stored (AttentionSpec::results).
[[nodiscard]] bool has_results(const launch::Kernel& kernel);

// The same as bind_attention of such a kernel, which does one task's attention. Errors: G092, of
// what the kernel for few queries does not do too.
[[nodiscard]] Checked<AttentionSpec> bind_results(const KernelBinding& binding);

}  // namespace harpe::cuda
