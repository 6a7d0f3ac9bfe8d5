#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "plan/plan.h"
#include "support/diag.h"

namespace harpe {

// The plan file (commir.md D17, grammar in docs/plan.md):
//   plan version 1 hash "…"
//   program … {…}   mesh …   commir … {…}   plan … {…}
// The hash is hash_text of everything after the first line. parse_plan(print_plan(p)) == p.
// Requires (print_plan): Blocks::make accepts program, mesh and form.
// Errors (parse_plan), all with line and column: T0xx; V101 the hash differs; V102 unknown version;
// V103 ids are not dense, or a number is out of range; V104 a name does not resolve; V105 a box
// does not fit its digits; V106 more than a million tasks; V107 the program has parameters;
// check_program's, check_mesh's and Blocks::make's.
[[nodiscard]] std::string print_plan(const Plan& plan);
// The hash in the first line of print_plan.
[[nodiscard]] std::string hash_plan(const Plan& plan);
[[nodiscard]] Checked<Plan> parse_plan(std::string_view text, const std::string& file);

// `[0, *, 2..4]`; `*` stands for a digit's whole extent, so printing needs the extents.
[[nodiscard]] std::string print_box(const Box& box, std::span<const std::int32_t> extents);

}  // namespace harpe
