#include "search/evaluator.h"

#include "lower/lower.h"
#include "plan/plan.h"
#include "sim/simulate.h"

namespace harpe {

Checked<Evaluation> SimulationEvaluator::evaluate(const NormalForm& form) {
  HP_TRY(const Plan plan, lower(program_, mesh_, form));
  HP_REQUIRE_OK(check_fits(plan, machine_));
  return Evaluation{.time = simulate(plan, machine_).total,
                    .memory_bytes = arena_bytes(plan),
                    .tasks = static_cast<std::int64_t>(plan.tasks.size())};
}

}  // namespace harpe
