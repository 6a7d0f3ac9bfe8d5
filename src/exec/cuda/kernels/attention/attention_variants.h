#pragma once

#include <vector>

#include "exec/cuda/jit/kernel_variant.h"
#include "exec/cuda/kernels/attention/device/attention_config.h"

namespace harpe::cuda {

// The kernel of a configuration. Requires: valid(config).
[[nodiscard]] KernelVariant attention_variant(const device::AttentionConfig& config);

// The configurations that `choose_attention` chooses from.
[[nodiscard]] const std::vector<device::AttentionConfig>& attention_configs();

[[nodiscard]] std::vector<KernelVariant> attention_variants();

}  // namespace harpe::cuda
