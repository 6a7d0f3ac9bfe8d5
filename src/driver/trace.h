#pragma once

#include <string>
#include <vector>

#include "exec/executor.h"
#include "plan/plan.h"
#include "support/diag.h"

namespace harpe {

// The timeline of one execution in the trace event format that Perfetto and chrome://tracing read:
// a process per rank, a thread per lane, one complete event per task with its plan line and its
// bytes. Errors: I102.
[[nodiscard]] Checked<Ok> write_trace(const std::string& path, const Plan& plan,
                                      const std::vector<TraceEvent>& events);

// The plan's `task` lines, by task.
[[nodiscard]] std::vector<std::string> task_lines(const Plan& plan);

}  // namespace harpe
