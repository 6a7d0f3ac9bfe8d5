#pragma once

#include "exec/cpu/marking.h"
#include "exec/cpu/runner.h"
#include "exec/fault.h"
#include "ir/blocks.h"

namespace harpe::cpu {

// Why a run stopped: for every rank that has not finished, the queue that is nearest to a cause,
// causes first. Requires: the outcome is not finished.
[[nodiscard]] FaultReport collect_faults(const Plan& plan, const Blocks& blocks,
                                         const Marking& marking, const RunOutcome& outcome);

}  // namespace harpe::cpu
