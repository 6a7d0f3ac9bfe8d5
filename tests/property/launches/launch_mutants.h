#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/launch_plan.h"
#include "plan/plan.h"

namespace harpe::test {

struct LaunchMutant {
  std::string mutation;
  // Nothing but what waits for what differs: what launches read and write is as it was.
  bool is_of_order = false;
  launch::LaunchPlan launches;
};

// Launch plans that differ from this one in one small fault each, wherever it can be made, or at
// most `per_kind` of every kind, spread over where it can be.
[[nodiscard]] std::vector<LaunchMutant> make_launch_mutants(const Plan& plan,
                                                            const launch::LaunchPlan& launches,
                                                            std::size_t per_kind = SIZE_MAX);

}  // namespace harpe::test
