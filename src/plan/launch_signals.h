#pragma once

#include <vector>

#include "plan/launch_plan.h"

namespace harpe::launch {

// Whether the kernel itself waits for signals, inside.
[[nodiscard]] bool waits_inside(const Kernel& kernel);
// Whether the kernel itself waits for signals or raises some.
[[nodiscard]] bool names_signals(const Kernel& kernel);

// Whether all that is raised are credits, which the next execution awaits.
[[nodiscard]] bool are_credits(const std::vector<Signal>& signals,
                               const std::vector<Raise>& raises);

// Slots in which addends wait for signals in data: each element shows by its value that it is
// there. Each slot once, in the order of allocations. If plans take turns with memory, executors
// keep these slots apart from memory that other plans use.
[[nodiscard]] std::vector<AllocId> inboxes_of(const LaunchPlan& launches);

}  // namespace harpe::launch
