#pragma once

#include "exec/cuda/kernels/attention/attention.h"
#include "exec/cuda/library/cudnn.h"

namespace harpe::library {

// What cuDNN is to compute for a spec: keys that no query sees are left out. None, and why, where
// it has no such kernel: a state that is carried on or left, a mask that is no band from a corner,
// more than one block of queries or keys.
[[nodiscard]] Result<AttentionShape, Missing> shape_of(const cuda::AttentionSpec& spec);

}  // namespace harpe::library
