#pragma once

#include <vector>

#include "plan/launch_plan.h"
#include "plan/plan.h"

namespace harpe::test {

// Per signal: whether somebody awaits it.
[[nodiscard]] std::vector<bool> find_awaited(const launch::LaunchPlan& launches);

// Partial states that launches touch, that end in 16 bits, and that cannot be left in them.
[[nodiscard]] std::vector<AllocId> find_states(const Plan& plan,
                                               const launch::LaunchPlan& launches);

}  // namespace harpe::test
