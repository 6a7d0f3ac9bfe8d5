#pragma once

#include "lower/draft.h"
#include "support/diag.h"

namespace harpe {

// Makes the launches that a persistent `fuse` covers on each rank a single one; what lies between
// them on the queue is done by the same kernel (commir.md 7.1). Errors: F244.
[[nodiscard]] Checked<Ok> fuse_kernels(Draft& draft);

}  // namespace harpe
