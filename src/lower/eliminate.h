#pragma once

#include <cstdint>

#include "lower/draft.h"

namespace harpe {

// Removes blocks of transfers, and whole tasks, whose result nothing reads before it is
// overwritten: backward from the outputs (7.2 step 5). A contiguous causal ring stops passing on
// what nobody needs.
void remove_dead_transfers(Draft& draft);

// Removes blocks of transfers whose destination already holds that very value, by value numbering
// in sequential order: K and V that are still in the slot from the last outer step are not sent
// again.
void remove_redundant_transfers(Draft& draft);

}  // namespace harpe
