#include "search/evaluator.h"

#include <utility>

#include "lower/lower.h"
#include "plan/plan.h"
#include "sim/simulate.h"

namespace harpe {

Checked<Evaluation> SimulationEvaluator::evaluate(const NormalForm& form) {
  LowerOptions options;
  options.limit = limit_;
  HP_TRY(Plan plan, lower(program_, mesh_, form, options));
  HP_REQUIRE_OK(check_fits(plan, machine_));
  const launch::LaunchPlan launches = make_launches_ ? make_launches_(plan) : launch::LaunchPlan();
  HP_TRY(const Picoseconds time, simulate_total(plan, launches, machine_, limit_));
  const std::int64_t bytes = arena_bytes(plan);
  return Evaluation{.time = time, .memory_bytes = bytes, .plan = std::move(plan)};
}

}  // namespace harpe
