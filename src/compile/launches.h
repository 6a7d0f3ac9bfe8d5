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

// Makes the launch plan for H200s with one rank per GPU (launch/make_launches.h). Requires: a
// verified plan. Errors: what GPUs cannot do.

[[nodiscard]] Checked<launch::LaunchPlan> make_gpu_launches(const Plan& plan);

struct SimulatedLaunches {
  CollectiveEngine collectives = CollectiveEngine::Auto;
  std::string_view without = {};  // a pass to leave out
};
// The launch plan with which a plan is simulated on a machine: that of H200s, if the machine's
// processors are GPUs. It is without launches, so that each task is launched by itself, if
// processors are not GPUs or cannot hold the plan, or if GPUs have no kernel for a task. Requires:
// a verified plan.
[[nodiscard]] launch::LaunchPlan launches_on(const Plan& plan, const Machine& machine,
                                             const SimulatedLaunches& how = {});

// The text of a target's launch plan. With `paranoid` it is read back and proved.
[[nodiscard]] Checked<std::string> show_launches(const Plan& plan, const launch::Target& target,
                                                 bool paranoid);
// Checks that the launch plans of H200s read back, can be bound and are proved: with and without
// shared GPUs, with NCCL, and where plans take turns. A failure is a bug of Harpe (HP_CHECK).
[[nodiscard]] Checked<Ok> check_gpu_launches(const Plan& plan);

// The text after a pass. Requires: one of the names.
[[nodiscard]] std::vector<std::string> launch_pass_names();
[[nodiscard]] Checked<std::string> show_launches_after(const Plan& plan,
                                                       const launch::Target& target,
                                                       std::string_view pass);

// What each pass decided about the launch of a task, and why it left it unchanged: a line each.
// Requires: a task of the plan.
[[nodiscard]] Checked<std::string> explain_launch(const Plan& plan, const launch::Target& target,
                                                  TaskId task);

}  // namespace harpe
