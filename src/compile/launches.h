#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "exec/collective_use.h"
#include "launch/target.h"
#include "machine/machine.h"
#include "plan/launch_plan.h"
#include "plan/plan.h"
#include "support/diag.h"

namespace harpe {

// What H200s launch for a plan, a rank to a GPU (launch/make_launches.h).
// Requires: a verified plan. Errors: what GPUs cannot do.

[[nodiscard]] Checked<launch::LaunchPlan> make_gpu_launches(const Plan& plan);

struct SimulatedLaunches {
  CollectiveEngine collectives = CollectiveEngine::Auto;
  std::string_view without = {};  // a pass that is left out
};
// What a machine's ranks launch for a plan, as it is simulated: processors of many multiprocessors
// what H200s would. Without launches, so that each task is launched by itself, where processors
// are not GPUs or do not hold the plan, and where GPUs have no kernel for a task. Requires: a
// verified plan.
[[nodiscard]] launch::LaunchPlan launches_on(const Plan& plan, const Machine& machine,
                                             const SimulatedLaunches& how = {});

// The text of what a target launches. `paranoid`: it is read back and proved.
[[nodiscard]] Checked<std::string> show_launches(const Plan& plan, const launch::Target& target,
                                                 bool paranoid);
// Whether what H200s launch, shared or not, by NCCL, and where plans take turns, reads back, can be
// bound and is proved: a bug of ours where not (HP_CHECK).
[[nodiscard]] Checked<Ok> check_gpu_launches(const Plan& plan);

// The text as a pass left it. Requires: one of the names.
[[nodiscard]] std::vector<std::string> launch_pass_names();
[[nodiscard]] Checked<std::string> show_launches_after(const Plan& plan,
                                                       const launch::Target& target,
                                                       std::string_view pass);

// What the passes decided about the launch of a task, and why they left it alone: a line each.
// Requires: a task of the plan.
[[nodiscard]] Checked<std::string> explain_launch(const Plan& plan, const launch::Target& target,
                                                  TaskId task);

}  // namespace harpe
