#include "verify/verify_launches.h"

#include "verify/coverage.h"
#include "verify/cuts.h"
#include "verify/execution.h"
#include "verify/launch_bounds.h"
#include "verify/launch_structure.h"
#include "verify/meaning.h"
#include "verify/order.h"
#include "verify/progress.h"
#include "verify/races.h"
#include "verify/resolved.h"
#include "verify/rounding.h"
#include "verify/signals_in_data.h"
#include "verify/steps.h"
#include "verify/terms.h"
#include "verify/words.h"

namespace harpe {

namespace {

// Checks the roundings and the order of sums against the plan's, and that replicas have equal bits.
Checked<Ok> check_bits(const Plan& plan, const verifier::Words& of_plan,
                       const verifier::Steps& steps, const verifier::Words& words,
                       const verifier::Order& order, const verifier::Resolved& resolved,
                       const verifier::Meaning& meaning, verifier::Terms& terms,
                       const VerifyOptions& options) {
  verifier::Scope scope = verifier::scope_of(plan);
  scope.is_of_launches = true;  // masks may hide some of the finer blocks
  HP_TRY(const verifier::Order plan_order, verifier::Order::make(plan, of_plan));
  HP_TRY(const verifier::Resolved planned, verifier::Resolved::make(plan, of_plan, scope));
  verifier::Execution wanted(plan, of_plan, planned, meaning, terms, scope, verifier::Detail::Bits);
  HP_REQUIRE_OK(wanted.run(plan_order, options.limit));
  verifier::Execution bits(steps.plan, words, resolved, meaning, terms, steps.scope,
                           verifier::Detail::Bits);
  HP_REQUIRE_OK(bits.run(order, options.limit));
  HP_REQUIRE_OK(verifier::check_rounding(plan, words, planned, terms, wanted, bits));
  if (!verifier::has_replicas(words.model())) return Ok{};
  return verifier::check_replicas(steps.plan, words.model(), resolved, bits);
}

// Checks races and counters without the order of signals in data, except for the elements that each
// signal guards. So everything is also ordered with them.
Checked<Ok> check_order(const launch::LaunchPlan& launches, const verifier::Steps& steps,
                        const verifier::Words& words, const verifier::Resolved& resolved,
                        const verifier::Order& order, const TimeLimit& limit) {
  const auto check = [&](const verifier::Order& known, const verifier::OrdersCell& orders_cell) {
    const verifier::CounterCheck counters(launches, steps, known, words);
    return verifier::check_races(
        steps.plan, words, resolved, known, steps.scope, limit,
        [&](std::int32_t step, const verifier::Row& over) { return counters.check(step, over); },
        orders_cell);
  };
  HP_TRY(const verifier::CellsInData in_data,
         verifier::CellsInData::make(launches, steps, resolved, words));
  if (in_data.empty()) return check(order, {});
  HP_TRY(verifier::Order known,
         verifier::Order::make(verifier::drop_signals_in_data(steps), words));
  known.sequence = order.sequence;  // visits each element's store before its read
  return check(known, [&](std::size_t cell, std::int32_t writer, std::int32_t reader) {
    return in_data.orders(cell, writer, reader);
  });
}

// The stages in order. Each may assume what the stages above it proved (docs/math/verify.md 6).
Checked<LaunchCertificate> prove(const Plan& plan, const launch::LaunchPlan& launches,
                                 const verifier::Model& model, const VerifyOptions& options) {
  const verifier::Words of_plan(plan, model);
  HP_TRY(const verifier::Steps steps, verifier::make_steps(plan, launches, of_plan));
  HP_REQUIRE_OK(verifier::check_raises(launches, steps));
  const verifier::Words words(steps.plan, model,
                              [&](std::int64_t step) { return steps.name(step, of_plan); });

  HP_REQUIRE_OK(options.limit.check(verifier::kProof));
  HP_TRY(const verifier::Order order, verifier::Order::make(steps.plan, words));
  HP_REQUIRE_OK(verifier::check_progress(launches, steps, order, words));
  HP_TRY(const verifier::Resolved resolved,
         verifier::Resolved::make(steps.plan, words, steps.scope));
  HP_REQUIRE_OK(check_order(launches, steps, words, resolved, order, options.limit));

  verifier::Terms terms;
  HP_TRY(const verifier::Meaning meaning, verifier::Meaning::make(model, terms, options.limit));
  verifier::Execution execution(steps.plan, words, resolved, meaning, terms, steps.scope);
  HP_REQUIRE_OK(execution.run(order, options.limit));
  HP_TRY(const std::int64_t blocks,
         verifier::check_outputs(steps.plan, model, resolved, meaning, execution, terms));

  HP_REQUIRE_OK(check_bits(plan, of_plan, steps, words, order, resolved, meaning, terms, options));

  return LaunchCertificate{.launches = static_cast<std::int64_t>(launches.launches.size()),
                           .steps = static_cast<std::int64_t>(steps.scope.tasks),
                           .signals = static_cast<std::int64_t>(launches.signals.size()),
                           .blocks_checked = blocks};
}

}  // namespace

Checked<LaunchCertificate> verify_launches(const Plan& plan, const launch::LaunchPlan& launches,
                                           const VerifyOptions& options) {
  HP_TRY(const verifier::Model model, verifier::Model::make(plan.program, plan.mesh, plan.form));
  HP_REQUIRE_OK(verifier::check_launches(plan, launches, {plan, model}));
  HP_REQUIRE_OK(verifier::check_signals_in_data(launches));
  HP_REQUIRE_OK(verifier::check_bounds(plan, launches));
  const verifier::AxisCuts cuts = verifier::find_cuts(plan, launches, model);
  if (cuts.empty()) return prove(plan, launches, model, options);
  HP_TRY(const verifier::Model fine,
         verifier::Model::make(plan.program, plan.mesh, plan.form, cuts));
  return prove(verifier::cut_plan(plan, model, fine), launches, fine, options);
}

}  // namespace harpe
