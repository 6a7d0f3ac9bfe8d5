#pragma once

#include <chrono>
#include <functional>

#include "exec/cpu/marking.h"
#include "exec/cpu/runner.h"
#include "exec/group/group_board.h"

namespace harpe::cpu {

// Takes the queues of one rank through the executions that `marking` has opened, on the calling
// thread, while other ranks do so with theirs. Gives up when no rank has taken a step for
// `wait_limit`, another has given up or ended, or `is_hopeless`, which is asked now and then.
[[nodiscard]] RunOutcome run_rank(Marking& marking, GroupBoard& board,
                                  std::chrono::milliseconds wait_limit,
                                  const std::function<bool()>& is_hopeless);

}  // namespace harpe::cpu
