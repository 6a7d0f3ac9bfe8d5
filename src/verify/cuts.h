#pragma once

#include "plan/launch_plan.h"
#include "plan/plan.h"
#include "verify/model.h"

namespace harpe::verifier {

// Where places of launches begin or end inside blocks: kernels of grouped GEMMs take the rows of
// one expert at a time, and experts share a block. The model is then made with finer blocks.
[[nodiscard]] AxisCuts find_cuts(const Plan& plan, const launch::LaunchPlan& launches,
                                 const Model& model);

// The same plan over the blocks of a model with cuts: what it names it names whole.
[[nodiscard]] Plan cut_plan(Plan plan, const Model& coarse, const Model& fine);

}  // namespace harpe::verifier
