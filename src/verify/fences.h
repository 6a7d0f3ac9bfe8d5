#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plan/plan.h"
#include "support/diag.h"
#include "verify/order.h"
#include "verify/words.h"

namespace harpe::verifier {

// A fence is stated for signals raised behind puts and for nothing else. Requires: check_ids.
// Errors: V541.
[[nodiscard]] Checked<Ok> check_fences(const Plan& plan, const Words& words);

// Which signal behind `put` the task waits for, directly or not, why that signal does not cover it,
// and which policies would; none where it waits for none. Requires: `put` does not happen before
// `task`.
[[nodiscard]] std::optional<std::string> why_uncovered(const Plan& plan, const Words& words,
                                                       const Order& order, std::int32_t put,
                                                       std::int32_t task);

}  // namespace harpe::verifier
