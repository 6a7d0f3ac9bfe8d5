#pragma once

#include <vector>

#include "exec/cuda/executor/gpu_faults.h"
#include "exec/processes/process_group.h"

namespace harpe::cuda {

// As bytes for another process, and back; a blob that is none counts as a rank that is lost.
[[nodiscard]] transport::Blob pack(const RankReport& report);
[[nodiscard]] RankReport unpack(const transport::Blob& blob);

// Of every rank, once its replays are over; of a rank that answers no more, that. `own` is this
// rank's, and where it is not fine, the others are told to stop.
[[nodiscard]] std::vector<RankReport> exchange(processes::ProcessGroup& group,
                                               const RankReport& own,
                                               std::chrono::milliseconds wait_limit);

}  // namespace harpe::cuda
