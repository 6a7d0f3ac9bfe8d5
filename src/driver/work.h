#pragma once

#include <vector>

#include "plan/plan.h"

namespace harpe {

// Floating-point operations of each rank's compute tasks in one execution; of pairs under a mask
// only those that are seen; what masks on data hide counts as seen, for a plan does not know it.
// What a route decides counts as when all experts are chosen alike, and none is full.
[[nodiscard]] std::vector<double> work_of(const Plan& plan);

}  // namespace harpe
