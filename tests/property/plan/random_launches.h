#pragma once

#include <cstdint>

#include "plan/launch_plan.h"
#include "plan/plan.h"

namespace harpe::launch::test {

// A launch plan with every field at random, within what the text of a launch plan of `plan` may
// say. What it does makes no sense.
[[nodiscard]] LaunchPlan random_launches(const Plan& plan, std::uint64_t seed);

}  // namespace harpe::launch::test
