#pragma once

#include <cstdint>
#include <span>

#include "ir/interpret.h"
#include "ir/interpret_leaves.h"

namespace harpe {

// How large errors of elements may be. Every error of a schedule must stay a small fraction of its
// element's *size* (run/check.h): the larger of the element's magnitude and its scale. The scale is
// the magnitude that the element's terms would have if they were independent. Terms may cancel, but
// the errors of the terms do not.

[[nodiscard]] double size_at(const NamedTensor& tensor, std::int64_t place);
// The factor that multiplies another operand's error: the magnitude, which may itself be inexact.
[[nodiscard]] double factor_at(const NamedTensor& tensor, std::int64_t place);

// A sum of squares that does not overflow, for any f64 numbers.
class Squares {
 public:
  // Ignores numbers that are not finite.
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

// Requires: rms_scale. The smallest sqrt(s / length + eps).
[[nodiscard]] double least_root(const LeafCall& call);

// Requires: add_rms_norm with computed targets. The smallest sqrt(mean of s^2 + eps).
[[nodiscard]] double least_norm_root(const LeafCall& call);

// Requires: a leaf with scores and computed targets.
[[nodiscard]] ScoreSizes measure_scores(const LeafCall& call);

}  // namespace harpe
