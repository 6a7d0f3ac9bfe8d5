#pragma once

#include <cstdint>
#include <vector>

#include "machine/machine.h"
#include "plan/launch_plan.h"
#include "plan/plan.h"
#include "sim/cost.h"
#include "sim/puts.h"
#include "sim/simulate.h"
#include "sim/workload.h"

namespace harpe {

struct BuiltActivity {
  TaskId task;  // invalid: of a Join
  ActivityRole role = ActivityRole::Work;
  friend bool operator==(const BuiltActivity&, const BuiltActivity&) = default;
};

// A plan on a machine as the engine runs it.
struct BuiltWorkload {
  Workload workload;
  ResourceMap map;
  std::vector<BuiltActivity> of;            // per activity
  std::vector<std::int32_t> first_of_task;  // per task: the activity that its waits hold up
  std::vector<std::int32_t> begin_of_task;  // per task: the first of its Work
  std::vector<std::int32_t> work_of_task;   // per task: the activity whose end is its own
  std::vector<double> level_bytes;          // per level of the machine: what crosses it
};

// As the launch plan has it done; one without launches has every task launched by itself.
// Requires: check_fits; launches of the plan.
[[nodiscard]] BuiltWorkload build_workload(const Plan& plan, const launch::LaunchPlan& launches,
                                           const Machine& machine, const SimulateOptions& options);

}  // namespace harpe
