#include "sim/taxes.h"

#include <algorithm>
#include <map>
#include <set>

#include "sim/run.h"

namespace harpe {
namespace {

struct Roofline {
  Picoseconds time;
  Resource bound;
};

// The SMs of a transport are a choice of the schedule, not work.
bool counts(const Plan& plan, const BuiltWorkload& built, std::size_t activity, const Use& use) {
  const Resource& resource = built.workload.resources[static_cast<std::size_t>(use.resource)];
  const TaskId task = built.of[activity].task;
  if (resource.kind != ResourceKind::Sm || !task.valid()) return true;
  return plan.tasks[task.index()].kind == TaskKind::Compute;
}

// No schedule of these activities is faster than its busiest resource allows: the units used of it,
// divided by the most that queues, which run one activity at a time each, can use at once.
Roofline roofline_of(const Plan& plan, const BuiltWorkload& built) {
  const Workload& workload = built.workload;
  const std::size_t count = workload.resources.size();
  std::vector<double> units(count);
  std::vector<double> beside(count);  // rates of activities in no queue
  std::vector<std::map<std::int32_t, double>> in_queues(count);
  for (std::size_t i = 0; i < workload.activities.size(); ++i) {
    const Activity& activity = workload.activities[i];
    for (const Use& use : activity.uses) {
      if (!counts(plan, built, i, use)) continue;
      const auto at = static_cast<std::size_t>(use.resource);
      units[at] += use.rate * activity.work.seconds();
      if (activity.queue == kNoQueue) {
        beside[at] += use.rate;
      } else {
        double& most = in_queues[at][activity.queue];
        most = std::max(most, use.rate);
      }
    }
  }
  Roofline best;
  for (std::size_t i = 0; i < count; ++i) {
    if (units[i] <= 0) continue;
    double rate = beside[i];
    for (const auto& [queue, most] : in_queues[i]) rate += most;
    const Picoseconds time =
        from_seconds(units[i] / std::min(rate, workload.resources[i].capacity));
    if (time > best.time) best = {time, workload.resources[i]};
  }
  return best;
}

// The share of one rank's delay that reaches the end; the largest over a few ranks.
double skew_sensitivity(const Plan& plan, const launch::LaunchPlan& launches,
                        const Machine& machine, const SimulateOptions& options, Picoseconds total) {
  constexpr std::int64_t kShare = 10;
  const Picoseconds delay = std::min(Picoseconds(total.value / kShare),
                                     Picoseconds::longest() - total);  // the late run has a time
  if (delay.value == 0) return 0;
  const std::int64_t ranks = plan.mesh.ranks();
  double most = 0;
  for (const std::int64_t rank : std::set{std::int64_t{0}, ranks / 3, ranks / 2, ranks - 1}) {
    SimulateOptions late = options;
    late.delay = SimulateOptions::Delay{RankId(rank), delay};
    const Picoseconds time = run_plan(plan, launches, machine, late).engine.total;
    most = std::max(most,
                    static_cast<double>((time - total).value) / static_cast<double>(delay.value));
  }
  return most;
}

}  // namespace

Checked<Taxes> tax(const Plan& plan, const launch::LaunchPlan& launches, const Machine& machine,
                   Launch launch) {
  SimulateOptions options{.launch = launch, .ideal = {}, .delay = {}};
  const auto time = [&] { return run_plan(plan, launches, machine, options).engine.total; };
  Taxes taxes;
  taxes.total = time();
  HP_REQUIRE_OK(check_time(taxes.total, "the plan", machine));
  taxes.skew_sensitivity = skew_sensitivity(plan, launches, machine, options, taxes.total);
  // By a scheduling anomaly an idealised run may be slower: that tax is then zero.
  options.ideal.no_launch = true;
  const Picoseconds launched = std::min(taxes.total, time());
  options.ideal.tile_edges = true;
  const Picoseconds tiled = std::min(launched, time());
  options.ideal.no_round_trips = true;
  const BuiltRun last = run_plan(plan, launches, machine, options);
  const Picoseconds direct = std::min(tiled, last.engine.total);
  const Roofline roofline = roofline_of(plan, last.built);
  taxes.launch = taxes.total - launched;
  taxes.synchronization = launched - tiled;
  taxes.locality = tiled - direct;
  taxes.roofline = std::min(direct, roofline.time);
  taxes.residual = direct - taxes.roofline;
  taxes.bound = roofline.bound;
  return taxes;
}

}  // namespace harpe
