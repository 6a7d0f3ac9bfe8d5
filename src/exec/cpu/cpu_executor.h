#pragma once

#include <memory>

#include "exec/cpu/options.h"
#include "exec/executor.h"
#include "plan/launch_plan.h"
#include "plan/plan.h"
#include "support/diag.h"

namespace harpe {

// Runs a launch plan (docs/reference/launches.md) for all ranks in this process, or with
// `options.launch` for its share, with real numerics: f32, bf16 and f16 with f32 partial states,
// and f64. Signals are release/acquire atomics that count executions, as on a GPU. Operands are
// read and results stored where the launch plan places them. Panels of a launch run in its order,
// each in the order of its arrivals and addends, so results are bitwise the same for every runner,
// number of workers and timing. With `options.launch`, all processes make an executor, give it the
// same inputs and run it equally often; only the first may request outputs, which are whole. Ranks
// of one host share memory. Other hosts are reached by the plan's puts by proxy, under the policies
// that it states.
// Requires: a verified plan, and launches that were made for it. Both are copied.
// Errors: X001-X004, X006-X009, X011-X015 work that no kernel here computes; X005 memory; X010
// tasks; X016, X017 transfers that cannot cross hosts; V202 launches that land puts of other hosts;
// V704, V705 invalid panels and places; N0xx other processes and the network; F1xx of Blocks::make.
[[nodiscard]] Checked<std::unique_ptr<Executor>> make_cpu_executor(
    const Plan& plan, const launch::LaunchPlan& launches, const CpuOptions& options);

// The same with the launches of CPU ranks, each task by itself (exec/cpu/launch_target.h). Errors:
// also X019 a kernel that CPU ranks lack.
[[nodiscard]] Checked<std::unique_ptr<Executor>> make_cpu_executor(const Plan& plan,
                                                                   const CpuOptions& options);

}  // namespace harpe
