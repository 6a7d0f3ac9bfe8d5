#pragma once

#include <optional>
#include <vector>

#include "exec/cuda/signals/peers.h"
#include "exec/cuda/target/signal_pages.h"
#include "exec/fault.h"
#include "ir/blocks.h"

namespace harpe::cuda {

// How a rank's replays ended: the error of its stream, if any.
using RankEnd = std::optional<CudaError>;

// A rank's state after its replays.
struct RankReport {
  RankEnd end;
  std::optional<device::FaultRecord> record;
  bool is_poisoned = false;
  bool is_lost = false;  // its process has exited or hangs

  [[nodiscard]] bool is_fine() const { return !end && !record && !is_poisoned && !is_lost; }
};

// For a rank of this process.
[[nodiscard]] RankReport report_of(const Peers& peers, int rank, RankEnd end);

// The faults of all ranks, the root cause first; empty without faults. Lost ranks and failed GPUs
// come first, then ranks whose missing signal no other fault explains.
[[nodiscard]] FaultReport collect_gpu_faults(const Plan& plan, const Blocks& blocks,
                                             const launch::LaunchPlan& launches,
                                             const std::vector<RankReport>& reports);

}  // namespace harpe::cuda
