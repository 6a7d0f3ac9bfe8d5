#pragma once

#include "lower/draft.h"
#include "support/time_limit.h"

namespace harpe {

// Drops every edge that queue order and the other edges imply (7.2 step 9). The result is the
// unique smallest set, since the order is acyclic. With `may_fold`, exits that then still wait for
// most others do so behind one barrier. Errors: I504 more memory than `most_bytes` for that; I505.
[[nodiscard]] Checked<Ok> reduce_order(Draft& draft, bool may_fold, std::int64_t most_bytes,
                                       const TimeLimit& limit);

}  // namespace harpe
