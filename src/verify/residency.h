#pragma once

#include <cstdint>

#include "plan/plan.h"
#include "support/diag.h"
#include "verify/order.h"
#include "verify/words.h"

namespace harpe::verifier {

// Checks kernels that wait inside and hold their SMs meanwhile: everything that such a kernel waits
// for on its own rank is over when it starts, needs no SMs, or fits beside it (commir.md 10.3,
// docs/math/verify.md 2).
// Requires: check_ids. Errors: V530 the shortest cycle, V531, V532.
[[nodiscard]] Checked<Ok> check_residency(const Plan& plan, const Words& words, const Order& order,
                                          std::int64_t sm_count);

}  // namespace harpe::verifier
