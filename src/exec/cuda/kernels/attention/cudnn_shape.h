#pragma once

#include "exec/cuda/kernels/attention/attention.h"
#include "exec/cuda/library/cudnn.h"

namespace harpe::library {

// The shape that cuDNN computes for a spec, without keys that no query sees. Missing, with the
// reason, if cuDNN has no such kernel: a state carried in or out, a mask that is no band from a
// corner, more than one block of queries or keys.
[[nodiscard]] Result<AttentionShape, Missing> shape_of(const cuda::AttentionSpec& spec);

}  // namespace harpe::library
