#pragma once

#include "lower/draft.h"
#include "support/diag.h"
#include "support/time_limit.h"

namespace harpe {

// The space-time derivation (commir.md section 4): walks every nest's loops in order and adds, at
// each position for all ranks, the stages, computes and drains that the normal form implies. The
// order in which tasks are added is the sequential order that defines the plan's meaning. Keeps:
// the tasks already in draft.tasks (the entries). Errors: F2xx, F3xx; I505.
[[nodiscard]] Checked<Ok> derive(Draft& draft, bool space_time_only, const TimeLimit& limit = {});

// Checks the rules that need no walk. Errors: F2xx and F3xx except F211, F212, F214, F217.
[[nodiscard]] Checked<Ok> check_nests(Draft& draft);

}  // namespace harpe
