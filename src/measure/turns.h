#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "exec/executor.h"
#include "support/result.h"

namespace harpe {

// Executions that are timed, in microseconds. Requires, of all: the executors have their inputs;
// several are alike and on GPUs (exec/takes_turns.h).

// The last of the first few.
[[nodiscard]] Result<double, FaultReport> warm_up(Executor& executor,
                                                  std::chrono::milliseconds wait_limit);

// Of `iterations` back to back, fewer where `expected_us` is long. One more goes before them that
// does not count: it waits for ranks that begin later. Of several executors, one after the other.
[[nodiscard]] Result<std::vector<double>, FaultReport> take_turn(
    std::span<Executor* const> executors, double expected_us, std::int64_t iterations,
    std::chrono::milliseconds wait_limit);

// What each of so many in one graph takes, likewise. None where executors are not on GPUs.
[[nodiscard]] Result<std::optional<double>, FaultReport> take_turn_in_graph(
    std::span<Executor* const> executors, double expected_us, std::int64_t iterations,
    std::chrono::milliseconds wait_limit);

}  // namespace harpe
