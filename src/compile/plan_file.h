#pragma once

#include <string>

#include "plan/plan.h"
#include "support/diag.h"

namespace harpe {

// With more ranks than this, a plan file holds the program, mesh, normal form and the hash of the
// tasks. Reading it lowers the tasks again (commir.md D17).
constexpr std::int64_t kMaxWrittenRanks = 64;

// The text of a plan file: print_plan's; with more than kMaxWrittenRanks its last block is one
// line:
//   plan ring for attention on cp128 derived "0123…"
[[nodiscard]] std::string print_plan_file(const Plan& plan);

// Errors: parse_plan's; for derived tasks lower's, and I402 if they have another hash.
[[nodiscard]] Checked<Plan> parse_plan_file(const std::string& text, const std::string& path);

}  // namespace harpe
