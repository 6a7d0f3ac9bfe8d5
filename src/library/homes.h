#pragma once

#include <map>
#include <string>
#include <vector>

#include "harpe/plan.h"
#include "plan/plan.h"

namespace harpe::library {

// A plan's inputs, then its outputs, and the elements that each rank holds at home. Requires: the
// plan was lowered or parsed, so its form is well formed.
[[nodiscard]] std::vector<v1::Buffer> list_buffers(const Plan& plan);

// The layouts of the axes of inputs and outputs, as in PlanFacts. Requires: as list_buffers.
[[nodiscard]] std::map<std::string, std::string> list_layouts(const Plan& plan);

}  // namespace harpe::library
