#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace harpe {

// Finds the fastest of many candidates by successive halving: all remaining ones take turns, in an
// order that rotates, and after each round the slower half is dropped.

// The measurements of one candidate.
struct Standing {
  std::vector<double> times;  // microseconds of every counted execution
  std::int64_t rounds = 0;    // rounds that it completed
  bool failed = false;        // it failed in a turn, and takes no more

  // Requires: it has times.
  [[nodiscard]] double median() const;
  // The relative uncertainty of its median: from the interquartile range and the number of times.
  [[nodiscard]] double noise() const;
};

struct HalvingOptions {
  std::int64_t passes = 3;  // turns of each candidate in a round
  double equal = 0.005;     // medians at most this far apart are considered equal
  // The last `companions` candidates have turns in every round, and are neither dropped nor left.
  std::size_t companions = 0;
  std::function<bool()> is_over = {};  // checked before each turn; true ends the halving
  std::function<void(std::int64_t round, std::size_t left)> begin_round = {};
};

struct HalvingResult {
  std::vector<Standing> standings;  // of all, in the order given
  std::vector<std::size_t> left;    // the remaining ones, fastest first: one, two, or equally fast
                                    // ones
  std::int64_t rounds = 0;          // completed rounds
  bool complete = true;             // false: `is_over` ended it
};

// Executes a candidate several times and returns each time in microseconds; empty if it failed.
using TakeTurn = std::function<std::vector<double>(std::size_t index)>;

// Ends when at most two candidates are left, or when two rounds in a row dropped none. A candidate
// stays if it is within the noise of both, or within `equal`, of the last of the faster half.
[[nodiscard]] HalvingResult halve(std::size_t count, const TakeTurn& take_turn,
                                  const HalvingOptions& options);

}  // namespace harpe
