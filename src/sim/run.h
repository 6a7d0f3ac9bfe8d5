#pragma once

#include <cstdint>
#include <optional>

#include "machine/machine.h"
#include "plan/launch_plan.h"
#include "plan/plan.h"
#include "sim/build.h"
#include "sim/engine.h"
#include "sim/simulate.h"

namespace harpe {

// The workload of a plan and its run, from which simulations and taxes are derived.
struct BuiltRun {
  BuiltWorkload built;
  EngineRun engine;
  std::int64_t ranks_simulated = 0;
};
// Requires: check_fits. None where the time limit is over before the run is done.
[[nodiscard]] std::optional<BuiltRun> run_plan(const Plan& plan, const launch::LaunchPlan& launches,
                                               const Machine& machine,
                                               const SimulateOptions& options,
                                               const TimeLimit& limit);
[[nodiscard]] BuiltRun run_plan(const Plan& plan, const launch::LaunchPlan& launches,
                                const Machine& machine, const SimulateOptions& options);

}  // namespace harpe
