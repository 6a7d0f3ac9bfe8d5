#pragma once

#include "lower/draft.h"
#include "support/time_limit.h"

namespace harpe {

// Fills DraftTask::after with the dependences that the sequential order implies: any two tasks that
// access the same memory, one of them writing, stay ordered (commir.md 7.2 steps 3, 4). A slot that
// does not hold a digit whole has one content at a time; a write of another content waits for every
// access to the previous one. Entry owns every slot of its rank before all other tasks, Exit after
// them (D11). With `slots_alias` false, different blocks never share memory: the executable model's
// rule. Errors: I505.
[[nodiscard]] Checked<Ok> order_by_memory(Draft& draft, bool slots_alias, const TimeLimit& limit);

// Replaces edges between most ranks' first tasks and most other ranks' entries by one barrier (7.2
// step 10), if that needs fewer signals.
void fold_entries(Draft& draft);

// The number of rank pairs above which one counter is cheaper.
[[nodiscard]] std::size_t most_pairs(const Draft& draft);

// The task that represents the counter at a boundary.
[[nodiscard]] int barrier_of(const Draft& draft, TaskKind boundary);

}  // namespace harpe
