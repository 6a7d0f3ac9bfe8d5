#pragma once

#include <span>
#include <vector>

#include "exec/cuda/executor/rank_program.h"
#include "exec/executor.h"

namespace harpe::cuda {

// A traced execution, and the uncertainty between the ranks' clocks.
struct Timeline {
  std::vector<TraceEvent> events;
  std::vector<KernelEvent> kernels;
  std::chrono::nanoseconds uncertainty{0};
};

// A rank's launches, for its trace.
struct TracedLaunches {
  const Plan& plan;
  const launch::LaunchPlan& launch_plan;
  const SignalPages& pages;
  std::span<const PreparedLaunch> launches;  // of the rank, in order
};

// A rank's tasks in a traced execution, on the host's clock. Tasks of a launch begin together and
// end with it. A task whose signal the kernel awaits inside begins when the kernel first saw the
// signal. A total that the launch stores at home ends with it and takes no time of its own. The
// overhead of timestamps, estimated from adjacent timestamps, is subtracted. Requires: what `times`
// holds is of these launches.
[[nodiscard]] std::vector<TraceEvent> events_of(const TracedLaunches& rank, const RankTimes& times,
                                                const ClockFit& clock);

// The events of the rank's kernels whose blocks noted what they did, likewise.
[[nodiscard]] std::vector<KernelEvent> kernels_of(const TracedLaunches& rank,
                                                  const RankTimes& times, const ClockFit& clock);

// The same with the earliest task at time 0, sorted by task.
[[nodiscard]] Timeline from_the_first(Timeline timeline);

}  // namespace harpe::cuda
