#pragma once

#include "plan/plan.h"
#include "support/diag.h"
#include "support/time_limit.h"
#include "verify/model.h"
#include "verify/order.h"
#include "verify/resolved.h"

namespace harpe::verifier {

// Every two tasks that touch the same memory, one of them writing, are ordered. Memory is the slot:
// two contents of one slot conflict whatever their blocks, equal contents only where a block is the
// same. Entry and Exit touch all slots of their rank (D11).
//
// A collective reads remote parts through the member on the rank that has them (that member sends);
// so a read counts for that member, and members are unordered among themselves.
// Errors: V401-V406; I505.
[[nodiscard]] Checked<Ok> check_races(const Plan& plan, const Model& model,
                                      const Resolved& resolved, const Order& order,
                                      const TimeLimit& limit);

}  // namespace harpe::verifier
