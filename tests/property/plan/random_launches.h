#pragma once

#include <cstdint>

#include "plan/launch_plan.h"
#include "plan/plan.h"

namespace harpe::launch::test {

// A launch plan with random values in every field, limited to what its text can express for `plan`.
// It is not meaningful.
[[nodiscard]] LaunchPlan random_launches(const Plan& plan, std::uint64_t seed);

}  // namespace harpe::launch::test
