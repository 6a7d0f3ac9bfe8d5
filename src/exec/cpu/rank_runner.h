#pragma once

#include <chrono>
#include <functional>

#include "exec/cpu/marking.h"
#include "exec/cpu/runner.h"
#include "exec/group/group_board.h"

namespace harpe::cpu {

// Runs the queues of one rank through the executions that `marking` has opened, on the calling
// thread, while other ranks do the same. Gives up when no rank has taken a step for `wait_limit`,
// when another rank has given up or exited, or when `is_hopeless`, called from time to time,
// returns true.
[[nodiscard]] RunOutcome run_rank(Marking& marking, GroupBoard& board,
                                  std::chrono::milliseconds wait_limit,
                                  const std::function<bool()>& is_hopeless);

}  // namespace harpe::cpu
