#pragma once

#include "plan/plan.h"
#include "support/diag.h"
#include "verify/execution.h"
#include "verify/model.h"
#include "verify/resolved.h"
#include "verify/terms.h"
#include "verify/words.h"

namespace harpe::verifier {

// Compares what output homes hold after an execution of the plan and one of its launches, both of
// Bits on the same terms: on its way to a home a contribution may lose roundings that the plan
// makes and gains none, and contributions are added in the plan's order, but that a kernel's own
// may come first. Requires: both gave the program's values. Errors: V720, V721.
[[nodiscard]] Checked<Ok> check_rounding(const Plan& plan, const Words& words,
                                         const Resolved& resolved, const Terms& terms,
                                         Execution& of_plan, Execution& of_launches);

}  // namespace harpe::verifier
