#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/launch_plan.h"
#include "plan/plan.h"
#include "support/diag.h"

namespace harpe {

// What H200s launch for a plan, a rank to a GPU (launch/make_launches.h).
// Requires: a verified plan. Errors: G001 a build without the CUDA back end; what GPUs cannot do.

[[nodiscard]] Checked<launch::LaunchPlan> make_gpu_launches(const Plan& plan);

// The text. `paranoid`: it is read back and compared, as by Session.
[[nodiscard]] Checked<std::string> show_launches(const Plan& plan, bool paranoid);

// The text as a pass left it. Requires: one of the names.
[[nodiscard]] std::vector<std::string> launch_pass_names();
[[nodiscard]] Checked<std::string> show_launches_after(const Plan& plan, std::string_view pass);

// What the passes decided about the launch of a task, and why they left it alone: a line each.
// Requires: a task of the plan.
[[nodiscard]] Checked<std::string> explain_launch(const Plan& plan, TaskId task);

}  // namespace harpe
