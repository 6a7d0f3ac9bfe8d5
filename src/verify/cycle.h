#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "support/diag.h"
#include "verify/order.h"
#include "verify/words.h"

namespace harpe::verifier {

// V301: the tasks of a shortest cycle, each with what it waits for. `left`: per unit the number of
// edges into it that no completed unit has released. Requires: some unit has edges left.
[[nodiscard]] Diag describe_cycle(const Plan& plan, const Words& words, const Order& order,
                                  const std::vector<std::int32_t>& left);

}  // namespace harpe::verifier
