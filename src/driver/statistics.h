#pragma once

#include <span>
#include <vector>

namespace harpe {

// The smallest value that at least `share` of all do not exceed. Requires: not empty.
[[nodiscard]] double quantile(std::vector<double> values, double share);

// Correlation of ranks, equal values sharing theirs; 1 is the same order, -1 the opposite. 0 where
// either side does not vary. Requires: equal lengths.
[[nodiscard]] double spearman(std::span<const double> first, std::span<const double> second);
// Kendall's tau-b: pairs in the same order less pairs in opposite ones, over pairs that differ.
[[nodiscard]] double kendall(std::span<const double> first, std::span<const double> second);

}  // namespace harpe
