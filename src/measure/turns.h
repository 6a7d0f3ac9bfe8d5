#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "exec/executor.h"
#include "support/result.h"

namespace harpe {

// Executions that are timed, in microseconds. Requires, of all: the executor has its inputs.

// The last of the first few.
[[nodiscard]] Result<double, FaultReport> warm_up(Executor& executor,
                                                  std::chrono::milliseconds wait_limit);

// Of `iterations` back to back, fewer where `expected_us` is long. One more goes before them that
// does not count: it waits for ranks that begin later.
[[nodiscard]] Result<std::vector<double>, FaultReport> take_turn(
    Executor& executor, double expected_us, std::int64_t iterations,
    std::chrono::milliseconds wait_limit);

}  // namespace harpe
