#pragma once

#include <string>

#include "exec/cuda/kernels/attention/attention.h"
#include "exec/cuda/kernels/kernel_binding.h"

namespace harpe::cuda {

// Combines the attention launches that the kernel's tasks would run alone into one. Errors: G092.
[[nodiscard]] Checked<AttentionSpec> bind_attention(const KernelBinding& binding);

// The name of the variant whose keys are cut into `parts` parts.
[[nodiscard]] std::string print_parts(int parts);

}  // namespace harpe::cuda
