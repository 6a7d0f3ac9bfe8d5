#pragma once

#include <string>
#include <vector>

#include "exec/executor.h"
#include "plan/plan.h"
#include "sim/simulate.h"
#include "support/diag.h"

namespace harpe {

// Timelines in the trace event format that Perfetto and chrome://tracing read: a process per rank,
// a thread per queue, one complete event per task with its plan line and its bytes. Errors: I102.

// The timeline of one execution. What a task waited for others is a slice of its own before the
// task. For kernels that wait inside, a counter of each rank shows how many thread blocks are
// waiting.
[[nodiscard]] Checked<Ok> write_trace(const std::string& path, const Plan& plan,
                                      const std::vector<TraceEvent>& events,
                                      const std::vector<KernelEvent>& kernels = {});

// The timeline of a simulation. An arrow leads to each task from its cause in another queue.
[[nodiscard]] std::string print_trace(const Plan& plan, const Simulation& simulation);
[[nodiscard]] Checked<Ok> write_trace(const std::string& path, const Plan& plan,
                                      const Simulation& simulation);

// The plan's `task` lines, by task.
[[nodiscard]] std::vector<std::string> task_lines(const Plan& plan);

}  // namespace harpe
