#pragma once

#include <vector>

#include "exec/cuda/jit/kernel_variant.h"
#include "exec/cuda/kernels/attention/device/decode_config.h"

namespace harpe::cuda {

// The kernel of a configuration. Requires: valid(config).
[[nodiscard]] KernelVariant decode_variant(const device::DecodeConfig& config);

// The configurations that decode_config chooses from.
[[nodiscard]] const std::vector<device::DecodeConfig>& decode_configs();

}  // namespace harpe::cuda
