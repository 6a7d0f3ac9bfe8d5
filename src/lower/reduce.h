#pragma once

#include "lower/draft.h"
#include "support/time_limit.h"

namespace harpe {

// Drops every edge that queue order and the other edges imply (7.2 step 9). The result is the
// unique smallest set, because the order is acyclic. With `may_fold`, if exits then still wait for
// most other ranks, they do so behind one barrier. Errors: I504 it needs more memory than
// `most_bytes`; I505.
[[nodiscard]] Checked<Ok> reduce_order(Draft& draft, bool may_fold, std::int64_t most_bytes,
                                       const TimeLimit& limit);

}  // namespace harpe
