#include <chrono>
#include <utility>

#include "compile/launches.h"
#include "compile/simulation.h"
#include "compile/tune.h"
#include "harpe/plan.h"
#include "io/trace.h"
#include "library/boundary.h"
#include "library/plan_state.h"
#include "library/request.h"
#include "library/why.h"
#include "schedule/replay.h"

namespace harpe::library {
namespace {

harpe::Checked<SimulateOptions> to_internal(const v1::SimulateOptions& options,
                                            std::int64_t ranks) {
  SimulateOptions out;
  out.launch = options.launch == v1::LaunchMode::Graph ? Launch::Graph : Launch::Host;
  if (!options.delay) return out;
  constexpr double kLongest = 1e9;  // microseconds
  const auto [rank, us] = *options.delay;
  const bool is_in_range = rank >= 0 && rank < ranks && us >= 0 && us <= kLongest;
  if (!is_in_range) {
    return make_diag(DiagCode::I311,
                     {{"argument", "SimulateOptions::delay"},
                      {"wanted", "a rank below " + std::to_string(ranks) + " and up to 1e9 µs"},
                      {"found", "{" + std::to_string(rank) + ", " + std::to_string(us) + "}"}});
  }
  out.delay = SimulateOptions::Delay{RankId(rank), from_microseconds(us)};
  return out;
}

v1::Taxes to_public(const TaxRow& row) {
  v1::Taxes out;
  out.schedule = row.schedule;
  if (row.refusal) out.refusal = to_error(*row.refusal);
  if (!row.taxes) return out;
  const Taxes& taxes = *row.taxes;
  out.time_us = taxes.total.microseconds();
  out.roofline_us = taxes.roofline.microseconds();
  out.launch_us = taxes.launch.microseconds();
  out.synchronization_us = taxes.synchronization.microseconds();
  out.locality_us = taxes.locality.microseconds();
  out.residual_us = taxes.residual.microseconds();
  out.skew_sensitivity = taxes.skew_sensitivity;
  out.bound = row.bound;
  return out;
}

harpe::Checked<std::vector<v1::Taxes>> tax_schedules(const v1::Question& question, Call& call) {
  HP_TRY(Request request, make_request(question, call));
  if (question.schedule == "auto") request.schedule.reset();  // list_taxes takes every schedule
  const std::optional<std::string> machine = request.machine_text ? std::nullopt : request.machine;
  HP_TRY(const TaxList list, list_taxes(call.session(), request, machine,
                                        simulated_taxes(call.session(), Launch::Graph)));
  std::vector<v1::Taxes> out;
  out.reserve(list.rows.size());
  for (const TaxRow& row : list.rows) out.push_back(to_public(row));
  return out;
}

v1::Candidate to_public(const Tuned& tuned, const Evaluated& one) {
  return {.label = one.label,
          .named = one.named,
          .schedule = script_of(tuned, one),
          .time_us = one.time().microseconds(),
          .simulated = one.simulated.has_value(),
          .memory_bytes = one.memory_bytes,
          .excluded = one.excluded};
}

harpe::Checked<TuneRequest> make_tune_request(const v1::Question& question,
                                              const v1::TuneOptions& tuning, Call& call) {
  if (tuning.top < 1) {
    return make_diag(DiagCode::I311, {{"argument", "TuneOptions::top"},
                                      {"wanted", "at least 1"},
                                      {"found", std::to_string(tuning.top)}});
  }
  TuneRequest request;
  HP_TRY(request.subject, make_request(question, call));
  request.search.contract = tuning.any_placement ? Contract::Free : Contract::Standard;
  request.search.top = tuning.top;
  request.search.budget = tuning.budget;
  request.search.memory_limit = tuning.memory_bytes;
  request.search.exhaustive = tuning.exhaustive;
  request.search.progress = request.subject.progress;
  request.search.interrupted = request.subject.interrupted;
  return request;
}

harpe::Checked<v1::Tuned> tune_question(const v1::Question& question, const v1::TuneOptions& tuning,
                                        Call& call) {
  HP_TRY(const TuneRequest request, make_tune_request(question, tuning, call));
  HP_TRY(const Tuned tuned, harpe::tune(call.session(), request));
  const SearchResult& result = tuned.result;
  v1::Tuned out{.best = {},
                .candidates = result.candidates,
                .unique = result.unique,
                .feasible = result.feasible,
                .pruned = result.pruned,
                .estimated = result.estimated,
                .simulated = result.simulated,
                .search_s = result.seconds,
                .complete = result.complete,
                .known_since = tuned.known_since.value_or(""),
                .top = {},
                .baselines = {},
                .refused = {}};
  for (const Evaluated& one : result.top) out.top.push_back(to_public(tuned, one));
  for (const Evaluated& one : result.baselines) out.baselines.push_back(to_public(tuned, one));
  for (const Refused& one : result.refused) out.refused.push_back({one.reason, one.count});
  if (!tuned.certificate) return out;  // the ranks are too many for a plan
  const NormalForm& form = result.top.front().form;
  PlanParts parts{.plan = {},
                  .script = derive_script(tuned.program, tuned.mesh, form),
                  .machine = tuned.machine,
                  .search = result,
                  .why = explain_search(result, tuned.machine.name),
                  .certificate = tuned.certificate};
  HP_TRY(parts.plan,
         call.session().lower(
             {.program = tuned.program, .mesh = tuned.mesh, .script = parts.script, .form = form}));
  Call quiet({});  // keep what the search found, also if the caller has cancelled it
  HP_TRY(out.best, make_plan(std::move(parts), quiet));
  return out;
}

}  // namespace
}  // namespace harpe::library

namespace harpe::v1 {

Checked<Simulation> simulate(const Plan& plan, const std::string& machine,
                             const SimulateOptions& options) {
  return library::enter<Simulation>({}, [&](library::Call&) -> harpe::Checked<Simulation> {
    const harpe::Plan& simulated = plan.state().plan;
    HP_TRY(const Machine found, library::machine_of(plan.state(), machine));
    HP_TRY(const harpe::SimulateOptions asked,
           library::to_internal(options, simulated.mesh.ranks()));
    HP_TRY(const harpe::Simulation made,
           harpe::simulate(simulated, launches_on(simulated, found), found, asked));
    return Simulation{.prediction = library::to_prediction(found, simulated.program.name, made),
                      .trace = options.trace ? print_trace(simulated, made) : ""};
  });
}

Checked<Taxes> taxes(const Plan& plan, const std::string& machine) {
  return library::enter<Taxes>({}, [&](library::Call&) -> harpe::Checked<Taxes> {
    HP_TRY(const Machine found, library::machine_of(plan.state(), machine));
    HP_TRY(const TaxRow row,
           tax_row({.plan = plan.state().plan, .refits = {}}, found, Launch::Graph));
    return library::to_public(row);
  });
}

Checked<std::vector<Taxes>> taxes(const Question& question, const Options& options) {
  return library::enter<std::vector<Taxes>>(
      options, [&](library::Call& call) { return library::tax_schedules(question, call); });
}

Checked<Tuned> tune(const Question& question, const TuneOptions& tuning, const Options& options) {
  return library::enter<Tuned>(
      options, [&](library::Call& call) { return library::tune_question(question, tuning, call); });
}

}  // namespace harpe::v1
