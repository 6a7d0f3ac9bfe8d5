#pragma once

#include "cli/report.h"
#include "cli/terminal.h"
#include "run/run.h"

namespace harpe::cli {

// The output of `harpe run` for any run, of a plan or of libraries.

// The engine of collectives, and why it was not NCCL; nothing if there were none.
void add_collectives(const RunStats& stats, Rows& rows, Json& json);

void add_times(const RunStats& stats, Rows& rows);
[[nodiscard]] Json times_to_json(const RunStats& stats);  // microseconds
// The traffic between hosts, beside the plan's figure for one execution.
void add_network(const NetworkStats& stats, const RunRequest& request, const Plan& plan, Rows& rows,
                 Json& json);
void add_check(const CheckReport& report, Rows& rows, Json& json);
[[nodiscard]] Json inputs_to_json(const CommandLine& line, const RunRequest& request);

}  // namespace harpe::cli
