#pragma once

#include <string>

#include "exec/cuda/kernels/attention/attention.h"
#include "exec/cuda/kernels/kernel_binding.h"

namespace harpe::cuda {

// The attention that the launches alone make up. Errors: G092.
[[nodiscard]] Checked<AttentionSpec> bind_attention(const KernelBinding& binding);

// The variant whose keys are cut into so many parts.
[[nodiscard]] std::string print_parts(int parts);

}  // namespace harpe::cuda
