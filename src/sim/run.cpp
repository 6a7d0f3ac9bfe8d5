#include "sim/run.h"

#include <set>

#include "sim/fold.h"
#include "sim/tiles.h"

namespace harpe {
namespace {

// For fewer activities, finding classes takes as long as running all of them.
constexpr std::size_t kWorthFolding = 64;

std::int64_t ranks_of(const Plan& plan, const BuiltWorkload& built, const Quotient& quotient) {
  std::set<RankId> ranks;
  for (const std::int32_t activity : quotient.representative) {
    const TaskId task = built.of[static_cast<std::size_t>(activity)].task;
    if (task.valid()) ranks.insert(plan.queues[plan.tasks[task.index()].queue.index()].rank);
  }
  return static_cast<std::int64_t>(ranks.size());
}

}  // namespace

std::optional<BuiltRun> run_plan(const Plan& plan, const launch::LaunchPlan& launches,
                                 const Machine& machine, const SimulateOptions& options,
                                 const TimeLimit& limit) {
  BuiltRun run{.built = build_workload(plan, launches, machine, options),
               .engine = {},
               .ranks_simulated = 0};
  if (options.ideal.tile_edges) run.built = in_tiles(run.built, tiles_for(run.built));
  const Workload& workload = run.built.workload;
  std::optional<Quotient> quotient;
  if (options.fold == Fold::Auto && workload.activities.size() >= kWorthFolding) {
    quotient = fold(workload, limit);
  }
  std::optional<EngineRun> engine = run_workload(quotient ? quotient->workload : workload, limit);
  if (!engine) return std::nullopt;
  run.engine = quotient ? unfold(workload, *quotient, *engine) : *std::move(engine);
  run.ranks_simulated = quotient ? ranks_of(plan, run.built, *quotient) : plan.mesh.ranks();
  return run;
}

BuiltRun run_plan(const Plan& plan, const launch::LaunchPlan& launches, const Machine& machine,
                  const SimulateOptions& options) {
  return *run_plan(plan, launches, machine, options, {});
}

}  // namespace harpe
