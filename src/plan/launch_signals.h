#pragma once

#include <vector>

#include "plan/launch_plan.h"

namespace harpe::launch {

// Whether it waits for signals itself, and not the launch before it.
[[nodiscard]] bool waits_inside(const Kernel& kernel);
// Whether it waits for signals itself, or raises some.
[[nodiscard]] bool names_signals(const Kernel& kernel);

// Slots whose elements say by themselves that they are there: addends wait for signals in data
// there. Each once, in the order of allocations. Where plans take turns with memory, executors keep
// these apart from what other plans use.
[[nodiscard]] std::vector<AllocId> inboxes_of(const LaunchPlan& launches);

}  // namespace harpe::launch
