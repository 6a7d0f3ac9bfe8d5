#pragma once

#include <cstdint>
#include <span>

#include "ir/interpret.h"
#include "ir/interpret_leaves.h"

namespace harpe {

// How large the errors of elements may be: every error of a schedule is held to a small part of its
// element's *size* (run/check.h). The size is the element's magnitude, or its scale where that
// is more: what the terms that made it would measure, were they independent. A scale outlives
// cancellation: an error in the terms of a sum is as large as they are, whatever is left of them.

[[nodiscard]] double size_at(const NamedTensor& tensor, std::int64_t place);
// What an error of another operand is multiplied with: the magnitude, which may itself be off.
[[nodiscard]] double factor_at(const NamedTensor& tensor, std::int64_t place);

// A sum of squares that does not overflow: of f64 numbers up to the largest.
class Squares {
 public:
  // Passes over what is not finite.
  void add(double x) {
    if (x - x == 0) sum_ += static_cast<long double>(x) * static_cast<long double>(x);
  }
  [[nodiscard]] double root(double count = 1) const;

 private:
  long double sum_ = 0;
};

// Root mean squares of sizes and of factors.
struct Measure {
  double size = 0;
  double factor = 0;
};
[[nodiscard]] Measure measure_row(const NamedTensor& tensor, std::int64_t base,
                                  std::span<const std::int64_t> places);

// Requires: rms_scale. The least sqrt(s / length + eps).
[[nodiscard]] double least_root(const LeafCall& call);

// Requires: add_rms_norm, and its targets are computed. The least sqrt(mean of s^2 + eps).
[[nodiscard]] double least_norm_root(const LeafCall& call);

// Requires: a leaf with scores, and its targets are computed.
[[nodiscard]] ScoreSizes measure_scores(const LeafCall& call);

}  // namespace harpe
