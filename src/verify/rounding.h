#pragma once

#include "plan/plan.h"
#include "support/diag.h"
#include "verify/execution.h"
#include "verify/model.h"
#include "verify/resolved.h"
#include "verify/terms.h"
#include "verify/words.h"

namespace harpe::verifier {

// Compares the output homes after an execution of the plan and after one of its launches, both of
// Bits on the same terms. On its way to a home, a contribution in the launches may skip roundings
// of the plan but not gain any. Contributions are added in the plan's order, except that a kernel's
// own sum may come first. Requires: both gave the program's values. Errors: V720, V721.
[[nodiscard]] Checked<Ok> check_rounding(const Plan& plan, const Words& words,
                                         const Resolved& resolved, const Terms& terms,
                                         Execution& of_plan, Execution& of_launches);

}  // namespace harpe::verifier
