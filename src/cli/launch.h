#pragma once

#include <string>

#include "cli/command_line.h"
#include "support/diag.h"

namespace harpe::cli {

// Runs the command in that many processes, and reports how they ended if they do not report it
// themselves. Errors: U109, X018.
[[nodiscard]] Checked<int> launch_ranks(const CommandLine& line, const std::string& ranks);

}  // namespace harpe::cli
