#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plan/launch_plan.h"
#include "support/diag.h"

namespace harpe::launch {

constexpr std::int64_t kLaunchesVersion = 1;

// The text of a launch plan, one item per line (docs/reference/launches.md).
// parse_launches(print_launches(p, b, l), file, p, b) == l.
// Requires (both): `blocks` are the plan's, and allocations of one rank have different names
// (V208). Requires (print_launches): `launches` were made for the plan, so all names resolve.
// Errors (parse_launches), all with line and column: T0xx; V102 unknown version; V103 ids are not
// dense, or a number is out of range; V104 an allocation does not resolve; V105 `holds`; V108 a
// place does not fit its buffer; V109 the launches belong to another plan.
[[nodiscard]] std::string print_launches(const Plan& plan, const Blocks& blocks,
                                         const LaunchPlan& launches);
[[nodiscard]] Checked<LaunchPlan> parse_launches(std::string_view text, const std::string& file,
                                                 const Plan& plan, const Blocks& blocks);

[[nodiscard]] std::string_view print(SignalKind kind);

}  // namespace harpe::launch
