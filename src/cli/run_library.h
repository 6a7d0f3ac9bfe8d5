#pragma once

#include <optional>

#include "cli/command_line.h"
#include "compile/session.h"
#include "run/run.h"
#include "support/diag.h"

namespace harpe::cli {

// `run` by NCCL and libraries: with `--schedule library`, and with `auto` if the cache holds that
// they were faster than every schedule, which it then reports. Returns the exit status; none if a
// schedule has to run. Errors: with `--schedule library` run_library's.
[[nodiscard]] Checked<std::optional<int>> run_by_libraries(const CommandLine& line,
                                                           Session& session, const Request& subject,
                                                           const RunRequest& request);

// Refuses `--schedule library` together with `--launch`: U109.
[[nodiscard]] Checked<Ok> check_launch_by_libraries(const CommandLine& line);

}  // namespace harpe::cli
