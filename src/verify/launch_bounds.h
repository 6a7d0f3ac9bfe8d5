#pragma once

#include "plan/launch_plan.h"
#include "plan/plan.h"
#include "support/diag.h"

namespace harpe::verifier {

// Checks kernels that begin and end their rank's execution themselves (launch::Launch::bounds). The
// steps of a launch plan place the Entry before such a kernel and the Exit after it, as if both
// were separate kernels. The kernel may read before the Entry's waits are over. So this check shows
// that such reads touch only what no task writes or what the kernel's own signals guard, and that
// no other launch of its rank can observe the difference. Requires: check_launches. Errors: V740.
[[nodiscard]] Checked<Ok> check_bounds(const Plan& plan, const launch::LaunchPlan& launches);

}  // namespace harpe::verifier
