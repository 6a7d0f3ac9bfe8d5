#pragma once

#include <cstdint>
#include <span>

#include "exec/executor.h"

namespace harpe {

// What executors on GPUs offer to who measures them. Several of one plan, each with memory of its
// own, take turns execution by execution, so that none finds its operands in a cache.
// Requires, of all: `others` are of the same kind, on the same ranks, and have their inputs; this
// process has all ranks.
class TakesTurns {
 public:
  virtual ~TakesTurns() = default;

  // As Executor::run: execution i is by this one or one of the others, in a circle.
  [[nodiscard]] virtual Result<RunStats, FaultReport> run_in_turns(
      std::span<Executor* const> others, const RunOptions& options) = 0;
  // Microseconds of each of `count` executions, in turns, that are one graph: on the rank where
  // they take longest.
  [[nodiscard]] virtual Result<double, FaultReport> time_in_graph(
      std::span<Executor* const> others, std::int64_t count,
      std::chrono::milliseconds wait_limit) = 0;
};

}  // namespace harpe
