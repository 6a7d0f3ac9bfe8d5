#pragma once

#include <optional>

#include "cli/command_line.h"
#include "compile/session.h"
#include "run/run.h"
#include "support/diag.h"

namespace harpe::cli {

// `run` by NCCL and libraries: with `--schedule library`, and with `auto` where the cache knows
// that they were faster than every schedule, which is then said. The exit status; none: a schedule
// is to run. Errors: with `--schedule library` run_library's.
[[nodiscard]] Checked<std::optional<int>> run_by_libraries(const CommandLine& line,
                                                           Session& session, const Request& subject,
                                                           const RunRequest& request);

// `--schedule library` and `--launch` do not go together: U109.
[[nodiscard]] Checked<Ok> check_launch_by_libraries(const CommandLine& line);

}  // namespace harpe::cli
