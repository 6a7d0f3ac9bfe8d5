#pragma once

#include "plan/launch_plan.h"
#include "support/diag.h"
#include "verify/order.h"
#include "verify/steps.h"
#include "verify/words.h"

namespace harpe::verifier {

// Kernels that wait inside come to their end with the SMs that there are: their thread blocks take
// panels in order, as one block would, and what they wait for on their own rank is not kept from
// the SMs that they hold (docs/math/verify.md 6). Errors: V710 to V712.
[[nodiscard]] Checked<Ok> check_progress(const launch::LaunchPlan& launches, const Steps& steps,
                                         const Order& order, const Words& words);

}  // namespace harpe::verifier
