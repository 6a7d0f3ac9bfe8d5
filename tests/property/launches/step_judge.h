#pragma once

#include "plan/launch_plan.h"
#include "plan/plan.h"

namespace harpe::test {

// Whether two launch plans whose steps do the same work order it alike: in two executions in a row,
// every two steps that touch the same memory, one of them writing, come in the same order, and so
// does all that touches a rank's homes between its entry and its exit. By the closure of what waits
// for what, every pair by itself: it knows neither clocks nor histories of cells.
[[nodiscard]] bool orders_alike(const Plan& plan, const launch::LaunchPlan& first,
                                const launch::LaunchPlan& second);

// Whether the second differs in nothing but that it reads inputs where other ranks have them too,
// between those ranks' entries and exits, by the same closure.
// Requires: the second is verified, so that the homes have the blocks that it reads.
[[nodiscard]] bool reads_replicas(const Plan& plan, const launch::LaunchPlan& first,
                                  const launch::LaunchPlan& second);

}  // namespace harpe::test
