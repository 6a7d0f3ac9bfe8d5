#pragma once

#include <span>
#include <vector>

#include "exec/cuda/jit/kernel_variant.h"
#include "exec/cuda/kernels/gemm/device/gemm_config.h"

namespace harpe::cuda {

// The tiles that are shipped, the most generally useful first; element types, layout and store are
// to be set.
[[nodiscard]] std::span<const device::GemmConfig> gemm_tiles();

// Whether tile and store go together in what is shipped.
[[nodiscard]] bool ships(const device::GemmConfig& config);

// All that are shipped.
[[nodiscard]] std::vector<device::GemmConfig> shipped_gemm_configs();

[[nodiscard]] KernelVariant gemm_variant(const device::GemmConfig& config);

[[nodiscard]] std::vector<KernelVariant> gemm_variants();

}  // namespace harpe::cuda
