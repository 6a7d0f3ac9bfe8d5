#include "compile/summary.h"

#include <algorithm>
#include <numeric>

#include "ir/text.h"
#include "plan/work.h"
#include "search/search.h"
#include "support/units.h"

namespace harpe {

PlanSummary summarise(const Plan& plan) {
  PlanSummary out;
  out.program = plan.program.name;
  out.mesh = print_mesh_option(plan.mesh);
  out.schedule = plan.form.name;
  if (plan.form.name == kSearched) out.steps = print_steps(plan.form);
  out.ranks = plan.mesh.ranks();
  out.tasks = static_cast<std::int64_t>(plan.tasks.size());
  out.syncs = static_cast<std::int64_t>(plan.syncs.size());
  out.barriers = static_cast<std::int64_t>(plan.barriers.size());
  for (const Task& task : plan.tasks) {
    if (task.kind == TaskKind::Copy || task.kind == TaskKind::Collective) {
      out.bytes_moved = saturating_add(out.bytes_moved, task.bytes);
    }
  }
  out.memory_bytes = arena_bytes(plan);
  out.work = work_of(plan);
  out.flops = std::accumulate(out.work.begin(), out.work.end(), 0.0);
  if (out.flops > 0) {
    out.balance =
        *std::ranges::max_element(out.work) * static_cast<double>(out.work.size()) / out.flops;
  }
  return out;
}

}  // namespace harpe
