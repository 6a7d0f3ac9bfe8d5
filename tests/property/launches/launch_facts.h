#pragma once

#include <functional>
#include <vector>

#include "plan/launch_plan.h"
#include "plan/plan.h"

namespace harpe::test {

// Per signal: true if a launch awaits it.
[[nodiscard]] std::vector<bool> find_awaited(const launch::LaunchPlan& launches);

// Partial states that launches touch and that end in 16 bits, but must not be kept in 16 bits.
[[nodiscard]] std::vector<AllocId> find_states(const Plan& plan,
                                               const launch::LaunchPlan& launches);

// Per signal: true if a fused store raises it and only addends await it, as signals in data
// require.
[[nodiscard]] std::vector<bool> find_fit_for_data(const launch::LaunchPlan& launches);
// Sets `is_in_data` on those signals.
void carry_in_data(launch::LaunchPlan& launches);

// True if a task of the launch writes something.
[[nodiscard]] bool touches(const Plan& plan, const launch::Launch& launch);

// True if a copy engine cannot do it: it computes, or reads another rank's memory.
[[nodiscard]] bool needs_kernel(const Plan& plan, const launch::Launch& launch);

using KernelTest = std::function<bool(const launch::Launch&, const launch::Kernel&)>;
[[nodiscard]] bool any_kernel(const launch::LaunchPlan& launches, const KernelTest& test);
void for_each_kernel(launch::LaunchPlan& launches,
                     const std::function<void(launch::Launch&, launch::Kernel&)>& edit);

}  // namespace harpe::test
