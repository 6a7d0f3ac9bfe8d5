#pragma once

#include <vector>

#include "plan/plan.h"

namespace harpe {

// Floating-point operations of each rank's compute tasks in one execution; of pairs under a mask
// only those that are seen; what masks on data hide counts as seen, for a plan does not know it.
// Empty for routed programs: what they compute depends on their inputs.
[[nodiscard]] std::vector<double> work_of(const Plan& plan);

}  // namespace harpe
