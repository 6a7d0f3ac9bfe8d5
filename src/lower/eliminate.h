#pragma once

#include <cstdint>

#include "lower/draft.h"

namespace harpe {

// Removes blocks of transfers, and whole tasks, whose result no task reads before it is
// overwritten: backward from the outputs (7.2 step 5). A contiguous causal ring then stops
// forwarding blocks that no rank needs.
void remove_dead_transfers(Draft& draft);

// Removes blocks of transfers whose destination already holds the same value, by value numbering in
// sequential order. For example, K and V that a slot still holds from the last outer step are not
// sent again.
void remove_redundant_transfers(Draft& draft);

}  // namespace harpe
