#pragma once

#include "lower/draft.h"
#include "support/diag.h"

namespace harpe {

// Joins, on each rank, the launches of a persistent `fuse` into one. The same kernel does the tasks
// between them on the queue (commir.md 7.1). Errors: F244.
[[nodiscard]] Checked<Ok> fuse_kernels(Draft& draft);

}  // namespace harpe
