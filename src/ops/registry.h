#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ir/program.h"
#include "support/diag.h"

namespace harpe {

// The operator library. An operator is a template program in CommIR text, one `.op` file each in
// this folder. A user's own `.op` file is treated in the same way.
struct Operator {
  std::string_view name;     // also the name of its program and of its family of named schedules
  std::string_view summary;  // the sentence `harpe ops` prints
  std::string_view text;     // the whole `.op` file
};

[[nodiscard]] std::span<const Operator> all_operators();
[[nodiscard]] const Operator* find_operator(std::string_view name);

// The operator's template, parsed. A shipped text that does not parse is our bug (HP_CHECK).
[[nodiscard]] Program template_of(const Operator& op);

// A `.op` file: exactly one program, and nothing after it. `file` is the name shown in diagnostics.
// Errors: T0xx, P0xx of the parser.
[[nodiscard]] Checked<Program> parse_operator(std::string_view text, const std::string& file);

}  // namespace harpe
