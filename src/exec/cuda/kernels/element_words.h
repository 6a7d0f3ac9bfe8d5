#pragma once

#include "exec/cuda/device/types.h"

namespace harpe::cuda {

// "bf16", as in kernel names; "BF16", as in kernel sources.
[[nodiscard]] const char* word_of(device::Element element);
[[nodiscard]] const char* enumerator_of(device::Element element);

}  // namespace harpe::cuda
