#pragma once

#include "plan/plan.h"

namespace harpe {

// The rank that owns the task's queue.
[[nodiscard]] RankId rank_of(const Plan& plan, TaskId task);

// Whether both refs contain a common block of one allocation.
[[nodiscard]] bool meet(const Ref& one, const Ref& other);

}  // namespace harpe
