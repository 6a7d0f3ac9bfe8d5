#pragma once

#include <vector>

#include "exec/cuda/device/gradient_config.h"
#include "exec/cuda/kernel_variant.h"

namespace harpe::cuda {

// The kernel of a configuration. Requires: valid(config).
[[nodiscard]] KernelVariant gradient_variant(const device::GradientConfig& config);

// Every configuration that ships.
[[nodiscard]] const std::vector<device::GradientConfig>& gradient_configs();

[[nodiscard]] std::vector<KernelVariant> gradient_variants();

}  // namespace harpe::cuda
