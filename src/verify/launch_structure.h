#pragma once

#include "plan/launch_plan.h"
#include "plan/plan.h"
#include "support/diag.h"
#include "verify/order.h"
#include "verify/steps.h"
#include "verify/words.h"

namespace harpe::verifier {

// Ids lie within the plan and the launch plan, each task is done by one launch of its rank, and
// kernels are what they are named. Errors: V701, V702, V704, V706.
[[nodiscard]] Checked<Ok> check_launches(const Plan& plan, const launch::LaunchPlan& launches,
                                         const Words& words);

// Each signal is raised as often in an execution as it takes. Errors: V703.
[[nodiscard]] Checked<Ok> check_raises(const launch::LaunchPlan& launches, const Steps& steps);

// Nothing is added to a counter in one execution before all that the execution before adds.
// Requires: check_raises. Errors: V707.
[[nodiscard]] Checked<Ok> check_counters(const launch::LaunchPlan& launches, const Steps& steps,
                                         const Order& order, const Words& words);

}  // namespace harpe::verifier
