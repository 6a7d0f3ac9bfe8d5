#pragma once

#include <string>
#include <vector>

#include "machine/machine.h"
#include "plan/plan.h"
#include "sim/build.h"
#include "sim/run.h"
#include "sim/simulate.h"
#include "sim/taxes.h"

namespace harpe {

// The plan of a named schedule.
[[nodiscard]] Plan plan_of(const std::string& target, const std::vector<std::string>& parameters,
                           const std::string& mesh, const std::string& schedule);

// Round figures for simple times: 16 processors of 4 SMs, 1 TB/s of memory, 100 GB/s per port,
// launches 2 us, copies 4 us, events 1 us, signals 1 us. The GEMM rate has no tiles and no ramp.
// `teraflops` is that of all SMs.
[[nodiscard]] Machine plain_machine(double teraflops = 100);
// Pairs of such processors on rails: 10 GB/s, signals 5 us, posts 1 us, fences 20 us.
[[nodiscard]] Machine paired_machine(double teraflops = 100);

// The shipped machine of eight H200s, and their launches for a plan.
[[nodiscard]] Machine h200();
[[nodiscard]] launch::LaunchPlan launched_by_h200(const Plan& plan);

// Launches each task by itself.

[[nodiscard]] inline Checked<Simulation> simulate(const Plan& plan, const Machine& machine,
                                                  const SimulateOptions& options = {}) {
  return simulate(plan, {}, machine, options);
}
[[nodiscard]] inline Checked<Picoseconds> simulate_total(const Plan& plan, const Machine& machine,
                                                         const TimeLimit& limit) {
  return simulate_total(plan, {}, machine, limit);
}
[[nodiscard]] inline Checked<Taxes> tax(const Plan& plan, const Machine& machine, Launch launch) {
  return tax(plan, {}, machine, launch);
}
[[nodiscard]] inline BuiltRun run_plan(const Plan& plan, const Machine& machine,
                                       const SimulateOptions& options) {
  return run_plan(plan, {}, machine, options);
}
[[nodiscard]] inline BuiltWorkload build_workload(const Plan& plan, const Machine& machine,
                                                  const SimulateOptions& options) {
  return build_workload(plan, {}, machine, options);
}

}  // namespace harpe
