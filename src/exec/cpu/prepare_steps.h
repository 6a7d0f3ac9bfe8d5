#pragma once

#include <vector>

#include "exec/actions/prepare.h"
#include "exec/cpu/launch_steps.h"
#include "exec/processes/partition.h"
#include "support/diag.h"

namespace harpe::cpu {

// Per queue and step, as LaunchSteps::queues.
using StepWork = std::vector<std::vector<actions::TaskWork>>;

// The work of each step; empty for steps of other processes. Operands are read and results stored
// where the launch plan places them. A panel's sum is memory of its launch, in f32, or f64 for f64;
// memory that no panel stores is unchanged. Requires: steps of these launches; partial states that
// these leave in 16 bits have that type in the setting's plan. Errors: those of prepare_task; V704
// invalid panels; V705 places.
[[nodiscard]] Checked<StepWork> prepare_steps(const actions::Setting& setting,
                                              const launch::LaunchPlan& launches,
                                              const LaunchSteps& steps,
                                              const processes::Partition& partition);

}  // namespace harpe::cpu
