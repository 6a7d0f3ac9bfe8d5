#pragma once

#include <vector>

#include "harpe/plan.h"
#include "plan/plan.h"

namespace harpe::library {

// Inputs, then outputs of a plan, and which elements each rank holds at home. Requires: the plan is
// lowered or parsed (its form is well formed).
[[nodiscard]] std::vector<v1::Buffer> list_buffers(const Plan& plan);

}  // namespace harpe::library
