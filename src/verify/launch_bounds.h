#pragma once

#include "plan/launch_plan.h"
#include "plan/plan.h"
#include "support/diag.h"

namespace harpe::verifier {

// Kernels that begin and end their rank's execution themselves (launch::Launch::bounds). The
// steps of a launch plan have the Entry before all that such a kernel does, and the Exit behind it,
// as if both were kernels of their own. So this shows that the kernel may read earlier: it reads
// only what no task writes, or what comes by its own signals, before the Entry's waits are over;
// and that no other launch of its rank could notice. Requires: check_launches. Errors: V740.
[[nodiscard]] Checked<Ok> check_bounds(const Plan& plan, const launch::LaunchPlan& launches);

}  // namespace harpe::verifier
