#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace harpe {

// The smallest value that at least `share` of all do not exceed. Requires: not empty.
[[nodiscard]] double quantile(std::vector<double> values, double share);

struct MedianInterval {
  double low = 0;
  double high = 0;
};
// An interval that contains the median of the distribution with a probability of at least 95 %, for
// any distribution. Its ends are two of the values, by the binomial distribution of the number of
// values below the median. None for fewer than six values, which are too few.
[[nodiscard]] std::optional<MedianInterval> median_interval(std::vector<double> values);

// Spearman's rank correlation, with mean ranks for equal values; 1 is the same order, -1 the
// opposite. 0 if either side does not vary. Requires: equal lengths.
[[nodiscard]] double spearman(std::span<const double> first, std::span<const double> second);
// Kendall's tau-b: pairs in the same order minus pairs in opposite order, over pairs that differ.
[[nodiscard]] double kendall(std::span<const double> first, std::span<const double> second);

// How much longer the fastest of the `first` shortest predictions takes than the fastest of all,
// relative to it; 0 if they include the fastest. Equal predictions keep the order given. Requires:
// equal lengths, not empty; first > 0.
[[nodiscard]] double regret(std::span<const double> predicted, std::span<const double> measured,
                            std::size_t first);

}  // namespace harpe
