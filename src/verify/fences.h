#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plan/plan.h"
#include "support/diag.h"
#include "verify/order.h"
#include "verify/words.h"

namespace harpe::verifier {

// Checks that only signals raised behind puts state a fence. Requires: check_ids.
// Errors: V541.
[[nodiscard]] Checked<Ok> check_fences(const Plan& plan, const Words& words);

// The signal behind `put` that the task waits for, directly or indirectly, why the signal does not
// cover the put, and which policies would. None if it waits for no such signal. Requires: `put`
// does not happen before `task`.
[[nodiscard]] std::optional<std::string> why_uncovered(const Plan& plan, const Words& words,
                                                       const Order& order, std::int32_t put,
                                                       std::int32_t task);

}  // namespace harpe::verifier
