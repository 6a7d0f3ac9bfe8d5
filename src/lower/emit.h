#pragma once

#include "lower/draft.h"
#include "plan/plan.h"
#include "support/time_limit.h"

namespace harpe {

// Draft -> plan: block lists become boxes; slots get one symmetric arena (D15: equal name, equal
// offset and bytes on all ranks); edges become queues, flags (one per signal, on the waiting rank)
// and barriers.
// Requires: reduce_order was run.
[[nodiscard]] Checked<Plan> emit(Draft draft, const TimeLimit& limit);

}  // namespace harpe
