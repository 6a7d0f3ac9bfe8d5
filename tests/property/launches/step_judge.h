#pragma once

#include "plan/launch_plan.h"
#include "plan/plan.h"

namespace harpe::test {

// True if two launch plans with the same steps order them alike. In two consecutive executions, any
// two steps that touch the same memory, at least one of them writing, must come in the same order;
// so must all steps that touch a rank's homes between its entry and its exit. It compares pairs in
// the closure of what waits for what, without clocks or histories of cells.
[[nodiscard]] bool orders_alike(const Plan& plan, const launch::LaunchPlan& first,
                                const launch::LaunchPlan& second);

// True if the second plan differs only in reading inputs from other ranks' replicas, between those
// ranks' entries and exits by the same closure. Requires: the second plan is verified, so that
// these homes hold the blocks that it reads.
[[nodiscard]] bool reads_replicas(const Plan& plan, const launch::LaunchPlan& first,
                                  const launch::LaunchPlan& second);

}  // namespace harpe::test
