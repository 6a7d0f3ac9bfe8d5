#pragma once

#include <string>

#include "cli/command_line.h"
#include "support/diag.h"

namespace harpe::cli {

// Runs the command in so many processes, and tells how they ended where they do
// not tell themselves. Errors: U109, X018.
[[nodiscard]] Checked<int> launch_ranks(const CommandLine& line, const std::string& ranks);

}  // namespace harpe::cli
