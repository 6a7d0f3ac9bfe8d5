#pragma once

#include <vector>

#include "exec/cuda/jit/kernel_variant.h"
#include "exec/cuda/kernels/backward/device/backward_config.h"

namespace harpe::cuda {

// The kernel of a configuration. Requires: valid(config).
[[nodiscard]] KernelVariant backward_variant(const device::BackwardConfig& config);

// Every configuration that ships.
[[nodiscard]] const std::vector<device::BackwardConfig>& backward_configs();

[[nodiscard]] std::vector<KernelVariant> backward_variants();

}  // namespace harpe::cuda
