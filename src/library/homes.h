#pragma once

#include <map>
#include <string>
#include <vector>

#include "harpe/plan.h"
#include "plan/plan.h"

namespace harpe::library {

// Inputs, then outputs of a plan, and which elements each rank holds at home. Requires: the plan is
// lowered or parsed (its form is well formed).
[[nodiscard]] std::vector<v1::Buffer> list_buffers(const Plan& plan);

// How ranks hold the axes of inputs and outputs, as PlanFacts has it. Requires: the same.
[[nodiscard]] std::map<std::string, std::string> list_layouts(const Plan& plan);

}  // namespace harpe::library
