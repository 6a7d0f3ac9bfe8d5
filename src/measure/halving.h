#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace harpe {

// Who of many is fastest, by successive halving: all that are left take turns, who goes first
// changing, and after each round the slower half is out.

// What is known of one.
struct Standing {
  std::vector<double> times;  // microseconds, of every execution that counts
  std::int64_t rounds = 0;    // that it went through to their end
  bool failed = false;        // in a turn: it took no more

  // Requires: it has times.
  [[nodiscard]] double median() const;
  // How far a median of as many times may be off, relative to it: from the middle half's width.
  [[nodiscard]] double noise() const;
};

struct HalvingOptions {
  std::int64_t passes = 3;  // turns of each in a round
  double equal = 0.005;     // medians that are no further apart are never told apart
  // The last so many are companions: they have their turns in every round, and are never out nor
  // left.
  std::size_t companions = 0;
  std::function<bool()> is_over = {};  // asked before each turn: true ends all with what there is
  std::function<void(std::int64_t round, std::size_t left)> begin_round = {};
};

struct HalvingResult {
  std::vector<Standing> standings;  // of all, in the order they were given in
  std::vector<std::size_t> left;    // at the end, fastest first: one, two, or as fast as each other
  std::int64_t rounds = 0;          // that came to their end
  bool complete = true;             // false: `is_over` ended it
};

// Executes one several times and says how long each took, in microseconds; nothing: it failed.
using TakeTurn = std::function<std::vector<double>(std::size_t index)>;

// Ends when at most two are left, or when two rounds in a row put none out. Whoever is as near to
// the last of the faster half as the noise of the two, or as `equal`, stays.
[[nodiscard]] HalvingResult halve(std::size_t count, const TakeTurn& take_turn,
                                  const HalvingOptions& options);

}  // namespace harpe
