#pragma once

#include <span>
#include <vector>

#include "exec/cuda/executor/rank_program.h"
#include "exec/executor.h"

namespace harpe::cuda {

// A traced execution, and how well the ranks' clocks are known against each other.
struct Timeline {
  std::vector<TraceEvent> events;
  std::vector<KernelEvent> kernels;
  std::chrono::nanoseconds uncertainty{0};
};

// A rank's tasks in a traced execution, on the host's clock. Tasks of a unit begin together, those
// whose signals its kernel awaits inside when the kernel first saw theirs, and end with it; what a
// unit writes home at once ends with it, too, and takes no time of its own. A stamp is as far from
// the work it stands beside as from another stamp: so much is taken off.
// Requires: what `times` holds is of these units.
[[nodiscard]] std::vector<TraceEvent> events_of(const Plan& plan, const Wiring& wiring,
                                                std::span<const Unit> units, const RankTimes& times,
                                                const ClockFit& clock);

// Its kernels that noted what their blocks did, likewise.
[[nodiscard]] std::vector<KernelEvent> kernels_of(std::span<const Unit> units,
                                                  const RankTimes& times, const ClockFit& clock);

// The same with the first of all tasks at 0, by task.
[[nodiscard]] Timeline from_the_first(Timeline timeline);

}  // namespace harpe::cuda
