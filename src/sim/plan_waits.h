#pragma once

#include <vector>

#include "plan/plan.h"
#include "sim/workload.h"

namespace harpe {

// A task that another one waits for, and how.
struct PlanWait {
  TaskId from;
  WaitKind kind = WaitKind::Queue;
};

// By task: the one before it in its queue first, then what syncs and barriers say.
[[nodiscard]] std::vector<std::vector<PlanWait>> waits_of(const Plan& plan);

}  // namespace harpe
