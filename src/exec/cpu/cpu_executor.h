#pragma once

#include <memory>

#include "exec/cpu/options.h"
#include "exec/executor.h"
#include "plan/plan.h"
#include "support/diag.h"

namespace harpe {

// Runs the queues of all ranks in this process, or with `launch` of its share, with real numerics:
// f32, bf16 and f16 with f32 partial states, and f64. Signals are release/acquire atomics that
// count executions, as on a device. Results are bitwise the same whatever the runner, the number of
// workers and the timing. With `launch` all processes make an executor, give it the same inputs and
// run it as often; the first may ask for outputs, which are whole. Ranks of one host share memory;
// other hosts are reached by what the plan sends by proxy, under the policies that it states.
// Requires: a verified plan. It is copied.
// Errors: X001-X004, X006-X009, X011-X015 what no kernel here computes; X005 memory; X010 tasks;
// X016, X017 what cannot cross hosts; X019 a kernel that CPU ranks lack; N0xx other processes and
// the network; F1xx of Blocks::make.
[[nodiscard]] Checked<std::unique_ptr<Executor>> make_cpu_executor(const Plan& plan,
                                                                   const CpuOptions& options);

}  // namespace harpe
