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

// A rank's launches, as a trace has them.
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

// Its kernels that noted what their blocks did, likewise.
[[nodiscard]] std::vector<KernelEvent> kernels_of(const TracedLaunches& rank,
                                                  const RankTimes& times, const ClockFit& clock);

// The same with the first of all tasks at 0, by task.
[[nodiscard]] Timeline from_the_first(Timeline timeline);

}  // namespace harpe::cuda
