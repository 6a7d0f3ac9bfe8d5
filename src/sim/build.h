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
  TaskId task;  // invalid for a Join
  ActivityRole role = ActivityRole::Work;
  friend bool operator==(const BuiltActivity&, const BuiltActivity&) = default;
};

// A plan on a machine, as the engine's workload.
struct BuiltWorkload {
  Workload workload;
  ResourceMap map;
  std::vector<BuiltActivity> of;            // per activity
  std::vector<std::int32_t> first_of_task;  // per task: the activity that its waits delay
  std::vector<std::int32_t> begin_of_task;  // per task: its first Work activity
  std::vector<std::int32_t> work_of_task;   // per task: the activity whose end is the task's end
  std::vector<double> level_bytes;          // per level of the machine: bytes that cross it
};

// Builds the workload of the launch plan. An empty launch plan means one launch for each task.
// Requires: check_fits; launches of the plan.
[[nodiscard]] BuiltWorkload build_workload(const Plan& plan, const launch::LaunchPlan& launches,
                                           const Machine& machine, const SimulateOptions& options);

}  // namespace harpe
