#include "measure/validation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "compile/certify.h"
#include "compile/launches.h"
#include "compile/library_leaves.h"
#include "ir/text.h"
#include "sim/simulate.h"

namespace harpe {
namespace {

constexpr std::string_view kAll = "all";
constexpr std::string_view kShown = "all that are shown";

// Schedules compete if they do the same on the same processors.
std::string question_of(const MeasuredCase& one) {
  return one.request.target + " " + one.label + " " + one.request.mesh.value_or("") + " " +
         one.processor;
}

// The agreement within one family, over all counted cases, or over all cases.
Agreement agreement_within(const std::string& family, bool counts,
                           const std::vector<Prediction>& predictions) {
  std::vector<TimePair> pairs;
  for (const Prediction& one : predictions) {
    const bool within = family == kShown || (family == kAll && one.measured.counts) ||
                        one.measured.family == family;
    if (!within) continue;
    pairs.push_back({.predicted_us = one.predicted.microseconds(),
                     .measured_us = one.measured.microseconds,
                     .question = question_of(one.measured)});
  }
  return agreement_of(family, counts, pairs);
}

// By family in order of appearance, then over all counted cases, then over all if some do not
// count.
std::vector<Agreement> agreements_of(const std::vector<Prediction>& predictions) {
  std::vector<Agreement> out;
  bool any = false;
  bool others = false;
  for (const Prediction& one : predictions) {
    any |= one.measured.counts;
    others |= !one.measured.counts;
    const std::string& family = one.measured.family;
    if (std::ranges::find(out, family, &Agreement::family) != out.end()) continue;
    out.push_back(agreement_within(family, one.measured.counts, predictions));
  }
  if (any) out.push_back(agreement_within(std::string(kAll), true, predictions));
  if (others) out.push_back(agreement_within(std::string(kShown), false, predictions));
  return out;
}

Checked<Plan> plan_of(Session& session, const MeasuredCase& one) {
  HP_TRY(Plan plan, session.plan(one.request));
  if (!one.by_libraries) return plan;
  const std::optional<LibraryLeaves> leaves = use_library_leaves(plan);
  if (!leaves) return plan;
  Request request = one.request;
  request.schedule_text = print(leaves->form);
  return session.plan(request);
}

}  // namespace

std::vector<PredictionError> errors_of(const Validation& validation, const std::string& note) {
  std::vector<std::string> families;
  std::map<std::string, std::vector<TimePair>> pairs;
  for (const Prediction& one : validation.predictions) {
    if (!one.measured.counts) continue;
    const std::string& family = one.measured.request.target;
    if (pairs[family].empty()) families.push_back(family);
    pairs[family].push_back({.predicted_us = one.predicted.microseconds(),
                             .measured_us = one.measured.microseconds,
                             .question = ""});
  }
  constexpr double kSteps = 1e4;  // steps per unit to which errors are rounded
  std::vector<PredictionError> errors;
  for (const std::string& family : families) {
    const Agreement agreement = agreement_of(family, true, pairs[family]);
    errors.push_back({.family = family,
                      .plans = agreement.count,
                      .median = std::round(kSteps * agreement.median_error) / kSteps,
                      .nine_of_ten = std::round(kSteps * agreement.error_90) / kSteps,
                      .from = {.origin = Origin::Measured, .note = note}});
  }
  return errors;
}

Checked<Validation> validate(Session& session, const std::string& folder, const Machine& machine,
                             const ValidateOptions& options) {
  HP_TRY(const std::vector<MeasuredCase> cases, read_measurements(folder));
  Validation out;
  for (const MeasuredCase& one : cases) {
    if (options.progress) options.progress("predicting " + one.family + " " + one.label);
    HP_TRY(const Plan plan, plan_of(session, one));
    HP_REQUIRE_OK(certify(plan, level_for(plan)));
    HP_REQUIRE_OK(check_fits(plan, machine));
    launch::LaunchPlan launches;
    if (options.without != kAllPasses) {
      launches =
          launches_on(plan, machine, {.collectives = one.collectives, .without = options.without});
    }
    if (!one.has_partials16) launches.partials16.clear();
    HP_TRY(const Simulation simulation, simulate(plan, launches, machine));
    out.predictions.push_back({one, simulation.total});
  }
  out.agreements = agreements_of(out.predictions);
  return out;
}

}  // namespace harpe
