#pragma once

#include <span>
#include <vector>

#include "exec/cuda/jit/kernel_variant.h"
#include "exec/cuda/kernels/gemm/device/gemm_config.h"

namespace harpe::cuda {

// The shipped tiles, the most generally useful first. The caller sets element types, layout and
// store.
[[nodiscard]] std::span<const device::GemmConfig> gemm_tiles();

// Whether the combination of tile, types, layout, store and maps is shipped.
[[nodiscard]] bool ships(const device::GemmConfig& config);

[[nodiscard]] std::vector<device::GemmConfig> shipped_gemm_configs();

[[nodiscard]] KernelVariant gemm_variant(const device::GemmConfig& config);

[[nodiscard]] std::vector<KernelVariant> gemm_variants();

}  // namespace harpe::cuda
