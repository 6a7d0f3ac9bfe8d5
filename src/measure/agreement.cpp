#include "measure/agreement.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "measure/statistics.h"

namespace harpe {
namespace {

struct Times {
  std::vector<double> predicted;
  std::vector<double> measured;
};

Times times_of(const std::vector<TimePair>& pairs, const std::string* question) {
  Times times;
  for (const TimePair& one : pairs) {
    if (question != nullptr && one.question != *question) continue;
    times.predicted.push_back(one.predicted_us);
    times.measured.push_back(one.measured_us);
  }
  return times;
}

void add_regret(Agreement& agreement, const Times& times) {
  if (times.measured.size() < 2) return;
  const auto add = [&](std::optional<double>& worst, std::size_t first) {
    worst = std::max(worst.value_or(0), regret(times.predicted, times.measured, first));
  };
  add(agreement.regret_1, 1);
  add(agreement.regret_8, 8);
}

}  // namespace

Agreement agreement_of(const std::string& family, bool counts, const std::vector<TimePair>& pairs) {
  const Times all = times_of(pairs, nullptr);
  std::vector<double> errors;
  double logarithms = 0;
  for (const TimePair& one : pairs) {
    errors.push_back(std::abs(one.ratio() - 1));
    logarithms += std::log(one.ratio());
  }
  Agreement agreement{.family = family,
                      .counts = counts,
                      .count = std::ssize(pairs),
                      .median_error = quantile(errors, 0.5),
                      .error_90 = quantile(errors, 0.9),
                      .mean_ratio = std::exp(logarithms / static_cast<double>(pairs.size())),
                      .spearman = spearman(all.predicted, all.measured),
                      .kendall = kendall(all.predicted, all.measured),
                      .regret_1 = std::nullopt,
                      .regret_8 = std::nullopt};
  std::map<std::string, std::int64_t> questions;
  for (const TimePair& one : pairs) ++questions[one.question];
  for (const auto& [question, count] : questions) add_regret(agreement, times_of(pairs, &question));
  return agreement;
}

}  // namespace harpe
