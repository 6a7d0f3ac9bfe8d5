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
// Holds the median of what the values were drawn from with a probability of 95 % or more, whatever
// its distribution: two of the values, by the binomial distribution of how many lie below the
// median. None of fewer than six values, which cannot tell.
[[nodiscard]] std::optional<MedianInterval> median_interval(std::vector<double> values);

// Correlation of ranks, equal values sharing theirs; 1 is the same order, -1 the opposite. 0 where
// either side does not vary. Requires: equal lengths.
[[nodiscard]] double spearman(std::span<const double> first, std::span<const double> second);
// Kendall's tau-b: pairs in the same order less pairs in opposite ones, over pairs that differ.
[[nodiscard]] double kendall(std::span<const double> first, std::span<const double> second);

// How much longer the fastest of the `first` shortest predictions takes than the fastest of all,
// relative to it: 0 where it is among them. Equal predictions stand in the order given. Requires:
// equal lengths, not empty; first > 0.
[[nodiscard]] double regret(std::span<const double> predicted, std::span<const double> measured,
                            std::size_t first);

}  // namespace harpe
