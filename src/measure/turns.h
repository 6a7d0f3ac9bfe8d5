#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "exec/executor.h"
#include "support/result.h"

namespace harpe {

// Timed executions, in microseconds. Requires for all: the executors have their inputs; several
// executors are alike and on GPUs (exec/takes_turns.h).

// Runs a few executions and returns the time of the last.
[[nodiscard]] Result<double, FaultReport> warm_up(Executor& executor,
                                                  std::chrono::milliseconds wait_limit);

// The times of `iterations` executions back to back, fewer if `expected_us` is long; on GPUs their
// mean alone, without timestamps in between. An additional first execution does not count, because
// it waits for ranks that begin later. Several executors run one after the other.
[[nodiscard]] Result<std::vector<double>, FaultReport> take_turn(
    std::span<Executor* const> executors, double expected_us, std::int64_t iterations,
    std::chrono::milliseconds wait_limit);

// The time per execution of several in one graph. None if the executors are not on GPUs.
[[nodiscard]] Result<std::optional<double>, FaultReport> take_turn_in_graph(
    std::span<Executor* const> executors, double expected_us, std::int64_t iterations,
    std::chrono::milliseconds wait_limit);

}  // namespace harpe
