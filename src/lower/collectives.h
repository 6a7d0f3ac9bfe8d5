#pragma once

#include "lower/draft.h"

namespace harpe {

// Names patterns among the transfers, so that one library call can do them (commir.md section 6).
// A bulk move bound to NCCL whose transfers are, over its mesh axes, an all-gather or an all-to-all
// of equal contiguous parts becomes Collective tasks with exactly the same effect; an all-to-all of
// partial sums that each owner folds in ascending rank becomes a reduce-scatter, and its inboxes
// go. What fits no pattern stays point to point.
void recognise_collectives(Draft& draft);

}  // namespace harpe
