#include "compile/choose_schedule.h"

#include <algorithm>

#include "compile/check_form.h"
#include "compile/launches.h"
#include "compile/machines.h"
#include "compile/plan_cache.h"
#include "compile/read_constraints.h"
#include "compile/schedule_names.h"
#include "lower/lower.h"
#include "schedule/fit.h"
#include "schedule/named/registry.h"
#include "schedule/replay.h"
#include "search/search.h"
#include "sim/simulate.h"

namespace harpe {
namespace {

// By how many percent a schedule without a name must be predicted faster than every schedule with
// one to be chosen. Predictions often err by that much, and such a schedule was usually never run
// (docs/decisions/0033-names-before-narrow-gains.md).
constexpr std::int64_t kNamelessGain = 10;

// Puts the fastest schedule with a name first, unless one without is faster by more than that.
void prefer_named(SearchResult& result) {
  const auto named = std::ranges::find_if(
      result.baselines, [](const Evaluated& one) { return one.excluded.empty(); });
  if (named == result.baselines.end()) return;
  const Picoseconds best = result.top.front().time();
  if (named->time().value / (100 + kNamelessGain) > best.value / 100) return;
  const auto same = std::ranges::find(result.top, named->form, &Evaluated::form);
  if (same != result.top.end()) {
    std::rotate(result.top.begin(), same, same + 1);
  } else {
    result.top.insert(result.top.begin(), *named);
  }
}

// The cached answer of an earlier search for the same question, or a new one. Errors: search's;
// I505.
Checked<AutoForm> search_for(const Program& program, const Mesh& mesh, const Machine& machine,
                             const Request& request, const Constraints& constraints,
                             const Warn& warn) {
  SearchOptions options;
  options.make_launches = [&](const Plan& plan) { return launches_on(plan, machine); };
  options.family = schedule_family(program);
  options.top = 2;  // the best, and the distance to the next one
  options.constraints = constraints;
  if (request.cache) {
    const CacheKey key = make_cache_key(program, mesh, machine, options, request.version);
    const auto check = [&](const NormalForm& form) { return check_form(program, mesh, form); };
    const CacheAnswer answer = consult_cache(*request.cache, key, check, warn);
    if (answer.exact) {
      return AutoForm{.form = answer_of(*answer.exact, request.site).form,
                      .machine = machine.name,
                      .known_since = answer.exact->date};
    }
  }
  options.budget = request.patience;
  options.progress = request.progress;
  options.interrupted = request.interrupted;
  Checked<SearchResult> result = search(program, mesh, machine, options);
  const bool is_cut = result.ok() ? !result->complete : result.error().code == DiagCode::S702;
  if ((request.patience || request.interrupted) && is_cut) {
    return make_diag(DiagCode::I505, {{"work", "the search for `auto`"}});
  }
  if (!result.ok()) return result.error();
  prefer_named(*result);
  return AutoForm{.form = result->top.front().form,
                  .machine = machine.name,
                  .search = std::move(result).value()};
}

// True if the form runs on the machine with the transports that it has.
bool runs(const Program& program, const Mesh& mesh, const NormalForm& form,
          const Machine& machine) {
  const Checked<Plan> plan = lower(program, mesh, fit_transports(form, mesh, machine).form);
  return plan.ok() && check_fits(*plan, machine).ok();
}

// The operator's rule. If its choice violates the constraints or does not run there, the first
// named schedule that satisfies both.
Checked<AutoForm> choose_by_rule(const Program& program, const Mesh& mesh,
                                 const Constraints& constraints,
                                 const std::optional<Machine>& runs_on) {
  const std::string family = schedule_family(program);
  HP_TRY(const Script script, choose_auto(family, program, mesh));
  HP_TRY(const NormalForm chosen, replay(program, mesh, script));
  const auto is_good = [&](const NormalForm& form) {
    return check_constraints(program, mesh, form, constraints).ok() &&
           (!runs_on || runs(program, mesh, form, *runs_on));
  };
  if (is_good(chosen)) return AutoForm{.form = chosen};
  for (const Applicability& each : find_applicable(family, program, mesh)) {
    if (!each.script.ok()) continue;
    const Checked<NormalForm> other = replay(program, mesh, *each.script);
    if (other.ok() && is_good(*other)) return AutoForm{.form = *other};
  }
  return AutoForm{.form = chosen};  // its refusal explains why
}

}  // namespace

Checked<AutoForm> choose_schedule(const Program& program, const Mesh& mesh, const Request& request,
                                  const Warn& warn) {
  HP_TRY(const Constraints constraints, read_constraints(program, mesh, request));
  const std::optional<Machine>& runs_on = request.runs_on;
  const Checked<Machine> machine =
      runs_on && !request.machine ? Checked<Machine>(*runs_on) : machine_for(request, mesh);
  if (!machine.ok()) {
    if (request.machine) return machine.error();
    return choose_by_rule(program, mesh, constraints, runs_on);
  }
  Checked<AutoForm> found = search_for(program, mesh, *machine, request, constraints, warn);
  const bool may_not_run = runs_on && request.machine;
  if (found.ok() && may_not_run && !runs(program, mesh, found->form, *runs_on)) {
    found = search_for(program, mesh, *runs_on, request, constraints, warn);
  }
  if (found.ok()) return found;
  const DiagCode code = found.error().code;
  const bool keeps_none = code == DiagCode::S704 && !constraints.empty();
  if (code == DiagCode::S701 || code == DiagCode::I505 || keeps_none) return found;
  return choose_by_rule(program, mesh, constraints, runs_on);
}

}  // namespace harpe
