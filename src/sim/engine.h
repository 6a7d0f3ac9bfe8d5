#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/workload.h"
#include "support/time_limit.h"

namespace harpe {

// When an activity ran, what it waited for, and what limited it.
struct Span {
  Picoseconds ready;  // everything that it waits for is over, including its queue
  Picoseconds begin;  // of its work: ready + start
  Picoseconds end;
  std::int32_t cause = -1;          // the activity whose end made it ready; -1: time 0
  WaitKind kind = WaitKind::Queue;  // how `cause` did that
  std::int32_t bound = -1;  // the resource that limited it longest; -1: it ran at full speed
  friend bool operator==(const Span&, const Span&) = default;
};

struct EngineRun {
  Picoseconds total;
  std::vector<Span> spans;    // per activity
  std::vector<double> units;  // per resource: units used
  friend bool operator==(const EngineRun&, const EngineRun&) = default;
};

// Runs the workload. Queues are FIFO, except pools. An activity starts when its dependencies are
// over. Running activities share resources max-min fairly on the fraction of their full speed
// (progressive filling); shares change at every start and end. Deterministic: equal inputs give
// equal picoseconds. An end is rounded up to the next picosecond, except within kRounding, so that
// the order of summing costs does not matter. Requires: dependencies and queue order have no cycle,
// rates and capacities are above 0 (HP_CHECK).
constexpr double kRounding = 1e-3;  // picoseconds
[[nodiscard]] EngineRun run_workload(const Workload& workload);
// None where the time limit is over before the run is done.
[[nodiscard]] std::optional<EngineRun> run_workload(const Workload& workload,
                                                    const TimeLimit& limit);

}  // namespace harpe
