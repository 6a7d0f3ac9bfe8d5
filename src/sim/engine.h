#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/workload.h"
#include "support/time_limit.h"

namespace harpe {

// When one activity ran, and what it waited for and was held back by.
struct Span {
  Picoseconds ready;  // everything it waits for is over, its queue included
  Picoseconds begin;  // of its work: ready + start
  Picoseconds end;
  std::int32_t cause = -1;          // the activity whose end made it ready; -1: time 0
  WaitKind kind = WaitKind::Queue;  // how `cause` did
  std::int32_t bound = -1;  // the resource that held it back longest; -1: it ran at full speed
  friend bool operator==(const Span&, const Span&) = default;
};

struct EngineRun {
  Picoseconds total;
  std::vector<Span> spans;    // per activity
  std::vector<double> units;  // per resource: what was taken of it
  friend bool operator==(const EngineRun&, const EngineRun&) = default;
};

// Runs the workload: queues are FIFO, but for pools, an activity starts when its dependencies are
// over, and running ones share resources max-min fairly on the fraction of their full speed
// (progressive filling), shares changing at every start and end. Deterministic; equal inputs give
// equal picoseconds. A completion is rounded up to the next picosecond, but for kRounding: what the
// order of summing costs does not count. Requires: dependencies and queue order have no cycle,
// rates and capacities are above 0 (HP_CHECK).
constexpr double kRounding = 1e-3;  // picoseconds
[[nodiscard]] EngineRun run_workload(const Workload& workload);
// None where the time is over before it is done.
[[nodiscard]] std::optional<EngineRun> run_workload(const Workload& workload,
                                                    const TimeLimit& limit);

}  // namespace harpe
