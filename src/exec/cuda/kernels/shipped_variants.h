#pragma once

#include <vector>

#include "exec/cuda/jit/kernel_variant.h"

namespace harpe::cuda {

// All variants of all kernels, families together.
[[nodiscard]] std::vector<KernelVariant> shipped_variants();

}  // namespace harpe::cuda
