#pragma once

#include "plan/launch_plan.h"
#include "plan/plan.h"
#include "verify/model.h"

namespace harpe::verifier {

// Where places of launches begin or end inside a block. A kernel of a grouped GEMM takes the rows
// of one expert at a time, and several experts may share a block. The model then gets finer blocks.
[[nodiscard]] AxisCuts find_cuts(const Plan& plan, const launch::LaunchPlan& launches,
                                 const Model& model);

// The same plan over the finer blocks of `fine`; its boxes keep their elements.
[[nodiscard]] Plan cut_plan(Plan plan, const Model& coarse, const Model& fine);

}  // namespace harpe::verifier
