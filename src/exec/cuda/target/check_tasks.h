#pragma once

#include "plan/plan.h"
#include "support/diag.h"

namespace harpe::cuda {

// Checks for what no GPU supports here. Errors: G074, G090, G091, X010, X019.
[[nodiscard]] Checked<Ok> check_tasks(const Plan& plan);

}  // namespace harpe::cuda
