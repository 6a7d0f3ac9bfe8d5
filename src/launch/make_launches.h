#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "launch/draft.h"
#include "launch/target.h"
#include "plan/launch_plan.h"

namespace harpe::launch {

struct LaunchOptions {
  // Called with its name after `begin` and after every pass. If signals of Entries replace credits,
  // all passes run again, and the last calls are for the launch plan that is returned.
  std::function<void(std::string_view pass, const Draft& draft)> after_pass = {};
  // A pass to leave out, to measure its effect. Such a launch plan is only priced, never run.
  std::string_view without = {};
};

// `begin`, then the passes in their order.
[[nodiscard]] std::vector<std::string_view> pass_names();

// What executes the plan's collectives on the target. Requires: a verified plan, and its blocks.
[[nodiscard]] Exchanges exchanges_of(const Plan& plan, const Blocks& blocks, const Target& target);

// Makes the target's launch plan of a plan. Pure. Requires: a verified plan, and its blocks.
// Errors: Target::check's, Offers::kernels_of's.
[[nodiscard]] Checked<LaunchPlan> make_launches(const Plan& plan, const Blocks& blocks,
                                                const Target& target,
                                                const LaunchOptions& options = {});

}  // namespace harpe::launch
