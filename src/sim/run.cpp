#include "sim/run.h"

#include <set>

#include "sim/fold.h"
#include "sim/tiles.h"

namespace harpe {
namespace {

// Below this, looking for classes takes as long as running all.
constexpr std::size_t kWorthFolding = 64;

std::int64_t ranks_of(const Plan& plan, const BuiltWorkload& built, const Quotient& quotient) {
  std::set<RankId> ranks;
  for (const std::int32_t activity : quotient.representative) {
    const TaskId task = built.of[static_cast<std::size_t>(activity)].task;
    if (task.valid()) ranks.insert(plan.lanes[plan.tasks[task.index()].lane.index()].rank);
  }
  return static_cast<std::int64_t>(ranks.size());
}

}  // namespace

BuiltRun run_plan(const Plan& plan, const Machine& machine, const SimulateOptions& options) {
  BuiltRun run{.built = build_workload(plan, machine, options), .engine = {}, .ranks_simulated = 0};
  if (options.ideal.tile_edges) run.built = in_tiles(run.built, tiles_for(run.built));
  const Workload& workload = run.built.workload;
  if (options.fold == Fold::Auto && workload.activities.size() >= kWorthFolding) {
    if (const std::optional<Quotient> quotient = fold(workload)) {
      run.engine = unfold(workload, *quotient, run_workload(quotient->workload));
      run.ranks_simulated = ranks_of(plan, run.built, *quotient);
      return run;
    }
  }
  run.engine = run_workload(workload);
  run.ranks_simulated = plan.mesh.ranks();
  return run;
}

}  // namespace harpe
