#pragma once

#include "plan/plan.h"

namespace harpe {

// The rank whose queue the task is in.
[[nodiscard]] RankId rank_of(const Plan& plan, TaskId task);

// Whether both name a block of one allocation.
[[nodiscard]] bool meet(const Ref& one, const Ref& other);

}  // namespace harpe
