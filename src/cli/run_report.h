#pragma once

#include "cli/report.h"
#include "cli/terminal.h"
#include "run/run.h"

namespace harpe::cli {

// What `harpe run` says of any run, of a plan or of libraries.

// Who did collectives, and why not NCCL; nothing where there were none.
void add_collectives(const RunStats& stats, Rows& rows, Json& json);

void add_times(const RunStats& stats, Rows& rows);
[[nodiscard]] Json times_to_json(const RunStats& stats);  // microseconds
// What went between hosts, beside what the plan says of one execution.
void add_network(const NetworkStats& stats, const RunRequest& request, const Plan& plan, Rows& rows,
                 Json& json);
void add_check(const CheckReport& report, Rows& rows, Json& json);
[[nodiscard]] Json inputs_to_json(const CommandLine& line, const RunRequest& request);

}  // namespace harpe::cli
