#include "driver/validation.h"

#include <algorithm>
#include <cmath>

#include "driver/certify.h"
#include "driver/statistics.h"
#include "sim/simulate.h"

namespace harpe {
namespace {

constexpr std::string_view kAll = "all";

Agreement agreement_of(const std::string& family, const std::vector<Prediction>& predictions) {
  std::vector<double> predicted;
  std::vector<double> measured;
  std::vector<double> errors;
  double logarithms = 0;
  for (const Prediction& one : predictions) {
    if (!one.measured.counts || (family != kAll && one.measured.family != family)) continue;
    predicted.push_back(one.predicted.microseconds());
    measured.push_back(one.measured.microseconds);
    errors.push_back(std::abs(one.ratio() - 1));
    logarithms += std::log(one.ratio());
  }
  const auto count = static_cast<std::int64_t>(errors.size());
  return {.family = family,
          .count = count,
          .median_error = quantile(errors, 0.5),
          .error_90 = quantile(errors, 0.9),
          .mean_ratio = std::exp(logarithms / static_cast<double>(count)),
          .spearman = spearman(predicted, measured),
          .kendall = kendall(predicted, measured)};
}

// Of every family that counts, in order of appearance, and of all where there is more than one.
std::vector<Agreement> agreements_of(const std::vector<Prediction>& predictions) {
  std::vector<std::string> families;
  for (const Prediction& one : predictions) {
    const bool known = std::ranges::find(families, one.measured.family) != families.end();
    if (one.measured.counts && !known) families.push_back(one.measured.family);
  }
  std::vector<Agreement> out;
  for (const std::string& family : families) out.push_back(agreement_of(family, predictions));
  if (families.size() > 1) out.push_back(agreement_of(std::string(kAll), predictions));
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
