#pragma once

#include "lower/draft.h"

namespace harpe {

// Recognises collectives among transfers, so that one library call can do them (commir.md section
// 6). A bulk move bound to NCCL whose transfers form an all-gather or an all-to-all of equal
// contiguous parts over its mesh axes becomes Collective tasks with exactly the same effect. An
// all-to-all of partial sums that each owner folds in ascending rank becomes a reduce-scatter, and
// its inboxes vanish. Other transfers stay point to point.
void recognise_collectives(Draft& draft);

}  // namespace harpe
