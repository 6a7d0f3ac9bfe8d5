#pragma once

#include <optional>
#include <vector>

#include "exec/cuda/executor/wiring.h"
#include "exec/cuda/peers.h"
#include "exec/fault.h"
#include "ir/blocks.h"

namespace harpe::cuda {

// How a rank's replays ended: what its stream came to, where that was not success.
using RankEnd = std::optional<CudaError>;

// What every rank has to say once all have ended, the root cause first; empty where all is well.
// A rank whose GPU failed comes first, then one whose missing signal nobody else explains.
[[nodiscard]] FaultReport collect_gpu_faults(const Plan& plan, const Blocks& blocks,
                                             const Wiring& wiring, const Peers& peers,
                                             const std::vector<RankEnd>& ends);

}  // namespace harpe::cuda
