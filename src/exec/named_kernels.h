#pragma once

#include "offers/offers.h"
#include "plan/plan.h"
#include "support/diag.h"

namespace harpe {

// Whether an executor can run all kernels that the plan names: it offers them for those leaves and
// types. A task that names none takes whatever the executor runs its leaf by. Errors: X019.
[[nodiscard]] Checked<Ok> check_kernels(const Plan& plan, const ExecutorOffers& offers);

}  // namespace harpe
