#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plan/launch_plan.h"
#include "support/diag.h"

namespace harpe::launch {

constexpr std::int64_t kLaunchesVersion = 1;

// The text of a launch plan, an item a line (docs/reference/launches.md).
// parse_launches(print_launches(p, b, l), file, p, b) == l.
// Requires (both): `blocks` are the plan's, and a rank's allocations have names of their own
// (V208). Requires (print_launches): `launches` were made for the plan; what is named is there.
// Errors (parse_launches), all with line and column: T0xx; V102 version not known; V103 ids not
// dense, or a number out of range; V104 an allocation that does not resolve; V105 `holds`; V108 a
// place that does not fit its buffer; V109 launches of another plan.
[[nodiscard]] std::string print_launches(const Plan& plan, const Blocks& blocks,
                                         const LaunchPlan& launches);
[[nodiscard]] Checked<LaunchPlan> parse_launches(std::string_view text, const std::string& file,
                                                 const Plan& plan, const Blocks& blocks);

[[nodiscard]] std::string_view print(SignalKind kind);

}  // namespace harpe::launch
