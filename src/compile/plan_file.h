#pragma once

#include <string>

#include "plan/plan.h"
#include "support/diag.h"

namespace harpe {

// Above this many ranks a plan file holds program, mesh, normal form and the hash of the tasks,
// which are lowered again when it is read (commir.md D17).
constexpr std::int64_t kMaxWrittenRanks = 64;

// The text of a plan file: print_plan's, or above kMaxWrittenRanks with its last block in one line:
//   plan ring for attention on cp128 derived "0123…"
[[nodiscard]] std::string print_plan_file(const Plan& plan);

// Errors: parse_plan's; where tasks are derived, lower's, and I402 when they have another hash.
[[nodiscard]] Checked<Plan> parse_plan_file(const std::string& text, const std::string& path);

}  // namespace harpe
