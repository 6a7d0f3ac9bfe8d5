#include "measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/check.h"

namespace harpe {
namespace {

// 1 for the smallest value; equal values get the mean of their ranks.
std::vector<double> ranks_of(std::span<const double> values) {
  std::vector<double> ranks;
  for (const double value : values) {
    double below = 0;
    double equal = 0;
    for (const double other : values) {
      below += other < value ? 1 : 0;
      equal += other == value ? 1 : 0;
    }
    ranks.push_back(below + (equal + 1) / 2);
  }
  return ranks;
}

double mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double correlation(std::span<const double> first, std::span<const double> second) {
  const double first_mean = mean(first);
  const double second_mean = mean(second);
  double both = 0;
  double first_square = 0;
  double second_square = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const double x = first[i] - first_mean;
    const double y = second[i] - second_mean;
    both += x * y;
    first_square += x * x;
    second_square += y * y;
  }
  const double scale = std::sqrt(first_square * second_square);
  return scale == 0 ? 0 : both / scale;
}

int order(double first, double second) { return first < second ? -1 : first > second ? 1 : 0; }

}  // namespace

double quantile(std::vector<double> values, double share) {
  HP_CHECK(!values.empty(), "a quantile of nothing");
  std::ranges::sort(values);
  const auto place =
      static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size()) - 1e-9));
  return values[std::clamp<std::size_t>(place, 1, values.size()) - 1];
}

std::optional<MedianInterval> median_interval(std::vector<double> values) {
  constexpr double kMostOutside = 0.05 / 2;  // on each side
  std::ranges::sort(values);
  const std::size_t count = values.size();
  double ways = std::exp2(-static_cast<double>(count));  // probability that `below` values are
                                                         // below the median
  double outside = 0;
  std::size_t below = 0;
  while (below < count && outside + ways <= kMostOutside) {
    outside += ways;
    ways *= static_cast<double>(count - below) / static_cast<double>(below + 1);
    ++below;
  }
  if (below == 0) return std::nullopt;
  return MedianInterval{.low = values[below - 1], .high = values[count - below]};
}

double spearman(std::span<const double> first, std::span<const double> second) {
  HP_CHECK(first.size() == second.size(), "a correlation of unequal lengths");
  if (first.empty()) return 0;
  return correlation(ranks_of(first), ranks_of(second));
}

double kendall(std::span<const double> first, std::span<const double> second) {
  HP_CHECK(first.size() == second.size(), "a correlation of unequal lengths");
  double agree = 0;
  double first_differ = 0;
  double second_differ = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const int x = order(first[i], first[j]);
      const int y = order(second[i], second[j]);
      agree += x * y;
      first_differ += x * x;
      second_differ += y * y;
    }
  }
  const double scale = std::sqrt(first_differ * second_differ);
  return scale == 0 ? 0 : agree / scale;
}

double regret(std::span<const double> predicted, std::span<const double> measured,
              std::size_t first) {
  HP_CHECK(predicted.size() == measured.size() && !measured.empty() && first > 0,
           "a regret of unequal lengths, or of nothing");
  std::vector<std::size_t> places(predicted.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::ranges::stable_sort(places, {}, [&](std::size_t index) { return predicted[index]; });
  double best = measured[places.front()];
  for (std::size_t i = 1; i < std::min(first, places.size()); ++i) {
    best = std::min(best, measured[places[i]]);
  }
  return best / std::ranges::min(measured) - 1;
}

}  // namespace harpe
