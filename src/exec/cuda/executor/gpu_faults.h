#pragma once

#include <optional>
#include <vector>

#include "exec/cuda/signals/peers.h"
#include "exec/cuda/target/signal_pages.h"
#include "exec/fault.h"
#include "ir/blocks.h"

namespace harpe::cuda {

// How a rank's replays ended: what its stream came to, where that was not success.
using RankEnd = std::optional<CudaError>;

// What is known of a rank once its replays have ended.
struct RankReport {
  RankEnd end;
  std::optional<device::FaultRecord> record;
  bool is_poisoned = false;
  bool is_lost = false;  // its process answers no more

  [[nodiscard]] bool is_fine() const { return !end && !record && !is_poisoned && !is_lost; }
};

// Of a rank of this process.
[[nodiscard]] RankReport report_of(const Peers& peers, int rank, RankEnd end);

// What the ranks have to say, the root cause first; empty where all is well. A rank that is lost
// or whose GPU failed comes first, then one whose missing signal nobody else explains.
[[nodiscard]] FaultReport collect_gpu_faults(const Plan& plan, const Blocks& blocks,
                                             const launch::LaunchPlan& launches,
                                             const std::vector<RankReport>& reports);

}  // namespace harpe::cuda
