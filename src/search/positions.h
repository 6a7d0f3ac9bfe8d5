#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ir/visibility.h"
#include "search/candidate.h"

namespace harpe {

constexpr int kMostLoops = kMostParts * kMostAxes;
using PartCoordinates = std::array<int, kMostParts>;  // of one rank
using LoopTimes = std::array<int, kMostLoops>;

struct Stretch {
  double begin = 0;
  double end = 0;
};

// The positions of a masked axis that a rank works on in a step.
class Positions {
 public:
  Positions(const Problem& problem, const Candidate& candidate,
            const std::vector<CandidateLoop>& loops, int axis);

  // Ascending, adjacent ones joined; `out` is overwritten. Without a time: over all steps.
  void stretches(const PartCoordinates& rank, const LoopTimes* time,
                 std::vector<Stretch>& out) const;

 private:
  struct Digit {
    std::int64_t extent;
    int part;
    int loop;  // or -1
    bool parallel;
  };
  // Blocks [begin, end).
  struct Run {
    std::int64_t begin;
    std::int64_t end;
  };
  // The digit's value in the step; none where all its values belong to the step.
  [[nodiscard]] std::int64_t value_of(const Digit& digit, const PartCoordinates& rank,
                                      const LoopTimes* time) const;
  void collect(const PartCoordinates& rank, const LoopTimes* time, std::size_t digit,
               std::int64_t value, std::int64_t runs, std::vector<Run>& out) const;
  void add_run(Run run, std::vector<Run>& out) const;

  double size_;
  std::vector<Digit> digits_;
  std::int64_t homes_ = 1;
  std::int64_t blocks_ = 1;
  bool zigzag_ = false;
};

// The share of pairs that the mask shows for these stretches of queries and keys.
[[nodiscard]] double seen_pairs(const Visibility& visible, const std::vector<Stretch>& queries,
                                const std::vector<Stretch>& keys);

}  // namespace harpe
