#pragma once

#include <functional>
#include <vector>

#include "plan/launch_plan.h"
#include "plan/plan.h"

namespace harpe::test {

// Per signal: whether somebody awaits it.
[[nodiscard]] std::vector<bool> find_awaited(const launch::LaunchPlan& launches);

// Partial states that launches touch, that end in 16 bits, and that cannot be left in them.
[[nodiscard]] std::vector<AllocId> find_states(const Plan& plan,
                                               const launch::LaunchPlan& launches);

// Per signal: whether a fused store raises it and nothing but addends awaits it, as signals in data
// need it.
[[nodiscard]] std::vector<bool> find_fit_for_data(const launch::LaunchPlan& launches);
// Sets `is_in_data` on these.
void carry_in_data(launch::LaunchPlan& launches);

// Whether its tasks write something.
[[nodiscard]] bool touches(const Plan& plan, const launch::Launch& launch);

// Whether a copy engine cannot do it: it computes, or reads what lies on another rank.
[[nodiscard]] bool needs_kernel(const Plan& plan, const launch::Launch& launch);

using KernelTest = std::function<bool(const launch::Launch&, const launch::Kernel&)>;
[[nodiscard]] bool any_kernel(const launch::LaunchPlan& launches, const KernelTest& test);
void for_each_kernel(launch::LaunchPlan& launches,
                     const std::function<void(launch::Launch&, launch::Kernel&)>& edit);

}  // namespace harpe::test
