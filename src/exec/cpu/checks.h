#pragma once

#include "plan/plan.h"
#include "support/diag.h"

namespace harpe::cpu {

// Checks that this host can hold `ranks_here` ranks of the plan. Errors: X005 memory; X010 tasks.
[[nodiscard]] Checked<Ok> check_size(const Plan& plan, std::int64_t ranks_here);

}  // namespace harpe::cpu
