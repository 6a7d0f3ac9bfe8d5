#pragma once

#include <string>

#include "ir/producer.h"
#include "plan/plan.h"

namespace harpe {

// How large the numbers inside a statement get: what turns a relative rounding of an intermediate
// into one of the result. 1 where a statement has no such intermediate.
struct Magnitudes {
  double score = 1;   // of q k^T * scale, at most
  double logsum = 1;  // of a row's logsumexp, made or read
};

// What rounding may do to one output, relative to the scale of its row (commir.md 9). Every term is
// the root-mean-square growth of independent roundings; u(t) is the unit roundoff of t.
struct ErrorBound {
  double leaf = 0;      // sqrt(K) u(accumulator) for a contraction of length K
  double states = 0;    // sqrt(folds) u(state)
  double wire = 0;      // roundings * u(wire), of partial states and operands on their way
  double operands = 0;  // of the temporaries the statement reads
  double output = 0;    // u(output)

  [[nodiscard]] double expected() const { return leaf + states + wire + operands + output; }
  [[nodiscard]] double limit() const { return 4 * expected(); }
};

// Requires: plan is lowered or parsed (its form is well formed); `buffer` is written by a
// statement.
[[nodiscard]] ErrorBound bound_of(const Plan& plan, const std::string& buffer,
                                  const Magnitudes& magnitudes);

}  // namespace harpe
