#pragma once

#include <cstdint>
#include <span>

#include "exec/executor.h"

namespace harpe {

// What executors on GPUs offer for measurements. Several executors of one plan, each with its own
// memory, run executions in turn, so that none finds its operands in a cache. Requires, for all
// functions: `others` are of the same kind, on the same ranks, and have their inputs; this process
// has all ranks.
class TakesTurns {
 public:
  virtual ~TakesTurns() = default;

  // As Executor::run; execution i runs on the executors round-robin, this one first.
  [[nodiscard]] virtual Result<RunStats, FaultReport> run_in_turns(
      std::span<Executor* const> others, const RunOptions& options) = 0;
  // Microseconds per execution of `count` executions, in turn, that are one graph: on the slowest
  // rank.
  [[nodiscard]] virtual Result<double, FaultReport> time_in_graph(
      std::span<Executor* const> others, std::int64_t count,
      std::chrono::milliseconds wait_limit) = 0;
};

}  // namespace harpe
