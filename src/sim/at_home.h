#pragma once

#include <vector>

#include "plan/plan.h"

namespace harpe {

// What launches do beside their own work while their states are still in registers. On GPUs a
// product or attention writes states that it makes whole, and that nobody wants but the rounding
// behind it, where that would put them; a product whose sums leave as they are made
// (sim/fused_stores.h) adds what others send to those that stay (docs/gpu.md).
struct AtHome {
  std::vector<char> rounded;  // per task: a Finalise that is done by the launch before it
  std::vector<char> added;    // per task: the same, of which that launch adds the other sources
  // Per task: of a Compute's targets, the share of their bytes that it writes to its rank's memory.
  std::vector<double> written;
};

// `fused_stores`: those of the plan.
[[nodiscard]] AtHome find_at_home(const Plan& plan,
                                  const std::vector<std::vector<TaskId>>& fused_stores);

}  // namespace harpe
