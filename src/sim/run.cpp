#include "sim/run.h"

#include "sim/tiles.h"

namespace harpe {

BuiltRun run_plan(const Plan& plan, const Machine& machine, const SimulateOptions& options) {
  BuiltRun run{.built = build_workload(plan, machine, options), .engine = {}, .ranks_simulated = 0};
  if (options.ideal.tile_edges) run.built = in_tiles(run.built, tiles_for(run.built));
  run.engine = run_workload(run.built.workload);
  run.ranks_simulated = plan.mesh.ranks();
  return run;
}

}  // namespace harpe
