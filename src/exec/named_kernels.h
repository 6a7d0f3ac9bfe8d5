#pragma once

#include "offers/offers.h"
#include "plan/plan.h"
#include "support/diag.h"

namespace harpe {

// Checks that the executor offers each kernel that the plan names, for that leaf and its types. For
// a task without a named kernel the executor chooses. Errors: X019.
[[nodiscard]] Checked<Ok> check_kernels(const Plan& plan, const ExecutorOffers& offers);

}  // namespace harpe
