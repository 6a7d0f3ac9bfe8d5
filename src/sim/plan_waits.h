#pragma once

#include <vector>

#include "plan/plan.h"
#include "sim/workload.h"

namespace harpe {

// A task that another task waits for, and the kind of the wait.
struct PlanWait {
  TaskId from;
  WaitKind kind = WaitKind::Queue;
};

// By task: the previous task of its queue first, then its syncs and barriers.
[[nodiscard]] std::vector<std::vector<PlanWait>> waits_of(const Plan& plan);

}  // namespace harpe
