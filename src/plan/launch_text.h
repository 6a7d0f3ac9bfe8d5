#pragma once

#include <string>
#include <string_view>

#include "plan/launch_plan.h"

namespace harpe::launch {

// The text of a launch plan, an item a line (docs/reference/launches.md). Requires: `blocks` are
// the plan's, and `launches` were made for the plan.
[[nodiscard]] std::string print_launches(const Plan& plan, const Blocks& blocks,
                                         const LaunchPlan& launches);

[[nodiscard]] std::string_view print(SignalKind kind);

}  // namespace harpe::launch
