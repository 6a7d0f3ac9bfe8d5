#include "driver/validation.h"

#include <algorithm>
#include <cmath>

#include "driver/certify.h"
#include "driver/statistics.h"
#include "sim/simulate.h"

namespace harpe {
namespace {

constexpr std::string_view kAll = "all";
constexpr std::string_view kShown = "all that are shown";

// Of one family, of all cases that count, or of all.
Agreement agreement_of(const std::string& family, bool counts,
                       const std::vector<Prediction>& predictions) {
  std::vector<double> predicted;
  std::vector<double> measured;
  std::vector<double> errors;
  double logarithms = 0;
  for (const Prediction& one : predictions) {
    const bool within = family == kShown || (family == kAll && one.measured.counts) ||
                        one.measured.family == family;
    if (!within) continue;
    predicted.push_back(one.predicted.microseconds());
    measured.push_back(one.measured.microseconds);
    errors.push_back(std::abs(one.ratio() - 1));
    logarithms += std::log(one.ratio());
  }
  const auto count = static_cast<std::int64_t>(errors.size());
  return {.family = family,
          .counts = counts,
          .count = count,
          .median_error = quantile(errors, 0.5),
          .error_90 = quantile(errors, 0.9),
          .mean_ratio = std::exp(logarithms / static_cast<double>(count)),
          .spearman = spearman(predicted, measured),
          .kendall = kendall(predicted, measured)};
}

// Of every family in order of appearance, then of all that count, then of all if there are others.
std::vector<Agreement> agreements_of(const std::vector<Prediction>& predictions) {
  std::vector<Agreement> out;
  bool any = false;
  bool others = false;
  for (const Prediction& one : predictions) {
    any |= one.measured.counts;
    others |= !one.measured.counts;
    const std::string& family = one.measured.family;
    if (std::ranges::find(out, family, &Agreement::family) != out.end()) continue;
    out.push_back(agreement_of(family, one.measured.counts, predictions));
  }
  if (any) out.push_back(agreement_of(std::string(kAll), true, predictions));
  if (others) out.push_back(agreement_of(std::string(kShown), false, predictions));
  return out;
}

}  // namespace

Checked<Validation> validate(Session& session, const std::string& folder, const Machine& machine,
                             const std::function<void(std::string_view)>& progress) {
  HP_TRY(const std::vector<MeasuredCase> cases, read_measurements(folder));
  Validation out;
  for (const MeasuredCase& one : cases) {
    if (progress) progress("predicting " + one.family + " " + one.label);
    HP_TRY(const Plan plan, session.plan(one.request));
    HP_REQUIRE_OK(certify(plan, level_for(plan)));
    HP_REQUIRE_OK(check_fits(plan, machine));
    out.predictions.push_back({one, simulate(plan, machine).total});
  }
  out.agreements = agreements_of(out.predictions);
  return out;
}

}  // namespace harpe
