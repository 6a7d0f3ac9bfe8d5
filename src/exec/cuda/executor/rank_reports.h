#pragma once

#include <vector>

#include "exec/cuda/executor/gpu_faults.h"
#include "exec/processes/process_group.h"

namespace harpe::cuda {

// Serialises a report for another process, and back; an invalid blob counts as a lost rank.
[[nodiscard]] transport::Blob pack(const RankReport& report);
[[nodiscard]] RankReport unpack(const transport::Blob& blob);

// The reports of all ranks, once their replays have ended; a rank that does not answer is reported
// as lost. `own` is this rank's report; if it has failed, the others are told to stop.
[[nodiscard]] std::vector<RankReport> exchange(processes::ProcessGroup& group,
                                               const RankReport& own,
                                               std::chrono::milliseconds wait_limit);

}  // namespace harpe::cuda
