#pragma once

#include "exec/cuda/device/types.h"

namespace harpe::cuda {

// "bf16", in names of kernels; "BF16", in their texts.
[[nodiscard]] const char* word_of(device::Element element);
[[nodiscard]] const char* enumerator_of(device::Element element);

}  // namespace harpe::cuda
