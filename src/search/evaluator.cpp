#include "search/evaluator.h"

#include <algorithm>

#include "lower/lower.h"
#include "plan/plan.h"
#include "sim/simulate.h"

namespace harpe {

namespace {

bool is_exact(const Plan& plan, const Task& task) {
  if (task.kind == TaskKind::Collective) return task.collective != CollectiveOp::ReduceScatter;
  if (task.kind != TaskKind::Copy) return true;
  for (std::size_t i = 0; i < task.reads.size(); ++i) {
    const Alloc& from = plan.allocs[task.reads[i].alloc.index()];
    const Alloc& to = plan.allocs[task.writes[std::min(i, task.writes.size() - 1)].alloc.index()];
    const bool partial = to.level != Level::Home && to.level != Level::Stage;
    if (partial && size_in_bytes(to.dtype) < size_in_bytes(from.dtype)) return false;
  }
  return true;
}

}  // namespace

Checked<Evaluation> SimulationEvaluator::evaluate(const NormalForm& form) {
  HP_TRY(const Plan plan, lower(program_, mesh_, form));
  HP_REQUIRE_OK(check_fits(plan, machine_));
  return Evaluation{.time = simulate(plan, machine_).total,
                    .memory_bytes = arena_bytes(plan),
                    .tasks = static_cast<std::int64_t>(plan.tasks.size()),
                    .exact = std::ranges::all_of(
                        plan.tasks, [&](const Task& task) { return is_exact(plan, task); })};
}

}  // namespace harpe
