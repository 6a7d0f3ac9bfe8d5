#pragma once

#include <vector>

#include "exec/cuda/jit/kernel_variant.h"

namespace harpe::cuda {

// The variants of all families, and of the kernels of signals.
[[nodiscard]] std::vector<KernelVariant> shipped_variants();

}  // namespace harpe::cuda
