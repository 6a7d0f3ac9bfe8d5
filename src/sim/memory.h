#pragma once

#include <vector>

#include "plan/plan.h"
#include "sim/engine.h"
#include "sim/simulate.h"

namespace harpe {

// Bytes in use over time, on the rank with the highest peak. Homes count from beginning to end,
// slots from the beginning of the first task that touches them to the end of the last. The arena is
// larger where slots share no bytes over time. `tasks` are spans per task.
[[nodiscard]] std::vector<MemoryPoint> memory_over_time(const Plan& plan,
                                                        const std::vector<Span>& tasks);

}  // namespace harpe
