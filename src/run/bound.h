#pragma once

#include <map>
#include <string>

#include "ir/interpret.h"
#include "ir/producer.h"
#include "plan/plan.h"

namespace harpe {

// The sizes of numbers inside statements, which convert the relative rounding of an intermediate
// into one of the result.
struct Magnitudes {
  std::map<std::string, ScoreSizes> scores = {};  // by the first target of a leaf with scores
  ScoreSizes other_scores = {};                   // of all other leaves
  std::map<std::string, double> roots = {};       // Meaning::roots; others: sqrt(eps)
  std::map<std::string, double> largest = {};     // |x| of inputs and temporaries; others: 1
};

// Bound on the rounding error of one output, relative to the scale of its row (commir.md 9). Every
// term is the root-mean-square growth of independent roundings; u(t) is the unit roundoff of t.
struct ErrorBound {
  double leaf = 0;      // sqrt(K) u(accumulator) for a contraction of length K
  double states = 0;    // sqrt(folds) u(state)
  double wire = 0;      // roundings * u(wire), of partial states and operands in transit
  double operands = 0;  // of the temporaries that the statement reads
  double output = 0;    // u(output)
  // The same roundings near 0, where the error no longer shrinks with the number: absolute, in
  // units of the output. Every rounding to t adds at most u(t) N(t), N the smallest normal number;
  // its growth in later statements is as in docs/cli.md.
  double underflow = 0;

  [[nodiscard]] double expected() const { return leaf + states + wire + operands + output; }
  [[nodiscard]] double limit() const { return 4 * expected(); }
  // Added to a row's scale, so that limit() also allows for underflow.
  [[nodiscard]] double floor() const { return expected() > 0 ? underflow / expected() : 0; }
};

// Requires: plan is lowered or parsed (its form is well formed); a statement writes `buffer`.
[[nodiscard]] ErrorBound bound_of(const Plan& plan, const std::string& buffer,
                                  const Magnitudes& magnitudes);

}  // namespace harpe
