#pragma once

#include <optional>
#include <vector>

#include "exec/cuda/executor/units.h"

namespace harpe::cuda {

// Copies by `tma` to other ranks as work of the kernel that waits for theirs: some of its blocks
// make them, granule by granule, from its beginning on (device/copy.cuh). No copy engine has to be
// started for each, and no flag has to follow.
struct FusedCopies {
  std::vector<TaskId> tasks;  // in the order of their queue
  std::vector<device::CopyJob> jobs;
  int blocks = 0;
};

// What the rank sends so, if all of it can be: dense inputs, that wait for nothing but the
// beginning. None where there is nothing, or signals of some are to be lost.
[[nodiscard]] std::optional<FusedCopies> find_fused_copies(const Plan& plan, const Wiring& wiring,
                                                           const std::vector<TaskSpecs>& specs,
                                                           RankId rank,
                                                           const SignalSource& signals);

// Gives the launch these to do; false, and nothing changed, where its kernel cannot.
[[nodiscard]] bool fuse_copies(const FusedCopies& copies, LaunchSpec& launch, int multiprocessors);

}  // namespace harpe::cuda
