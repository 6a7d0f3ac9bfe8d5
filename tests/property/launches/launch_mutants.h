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
  // True if only the order differs: launches read and write the same places.
  bool is_of_order = false;
  launch::LaunchPlan launches;
};

// Launch plans that each differ from this one in one small fault, at every place where the fault is
// possible, or at no more than `per_kind` places per kind, evenly spread.
[[nodiscard]] std::vector<LaunchMutant> make_launch_mutants(const Plan& plan,
                                                            const launch::LaunchPlan& launches,
                                                            std::size_t per_kind = SIZE_MAX);

}  // namespace harpe::test
