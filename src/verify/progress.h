#pragma once

#include "plan/launch_plan.h"
#include "support/diag.h"
#include "verify/order.h"
#include "verify/steps.h"
#include "verify/words.h"

namespace harpe::verifier {

// Checks that kernels that wait inside finish with the available SMs. The proof assumes that thread
// blocks take panels in order, as a single block would. It shows that the SMs that such a kernel
// holds never block what it waits for on its own rank (docs/math/verify.md 6). Errors: V710 to
// V712.
[[nodiscard]] Checked<Ok> check_progress(const launch::LaunchPlan& launches, const Steps& steps,
                                         const Order& order, const Words& words);

}  // namespace harpe::verifier
