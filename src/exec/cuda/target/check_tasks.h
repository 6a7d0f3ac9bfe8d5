#pragma once

#include "plan/plan.h"
#include "support/diag.h"

namespace harpe::cuda {

// What a plan may not have on GPUs, whatever they are. Errors: G074, G090, G091, X010, X019.
[[nodiscard]] Checked<Ok> check_tasks(const Plan& plan);

}  // namespace harpe::cuda
