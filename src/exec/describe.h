#pragma once

#include <string>

#include "ir/blocks.h"
#include "plan/plan.h"
#include "plan/refs.h"

namespace harpe {

// A short description of a task, for people: "compute fwd.0 iter [3, 2]", "copy a.home of rank 2 ->
// mm.a.st0.1 [2, *]".
[[nodiscard]] std::string describe(const Plan& plan, const Blocks& blocks, TaskId task);

}  // namespace harpe
