#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/bound.h"
#include "ir/program.h"
#include "ir/tensor.h"

namespace harpe {

// What rows of an output may be expected to measure, from the sizes of the operands: sqrt(K) rms(a)
// rms(b) for a sum of K products, rms(v) / sqrt(K) for a weighted mean. The root mean squares are
// of the part of each operand that contributes to the row.
class RowScale {
 public:
  RowScale(const Program& program, const Producer& producer, const TensorMap& inputs);

  // Requires: `coordinates` index every dimension of the output but the last.
  [[nodiscard]] double of(const std::vector<std::int64_t>& coordinates) const;

 private:
  // Root mean squares of one operand, one per value of the row axes it has.
  struct Part {
    std::vector<std::size_t> positions;  // of its row axes among the row's axes
    std::vector<std::int64_t> sizes;     // of these axes
    std::vector<double> rms;             // row-major over them
  };

  [[nodiscard]] Part measure(const Program& program, const Access& operand,
                             const HostTensor& tensor) const;
  void split_rows(const Program& program, const Access& target);

  std::vector<std::string> axes_;                // flattened, of all dimensions but the last
  std::vector<std::vector<std::int64_t>> dims_;  // per dimension: the sizes of its axes
  std::vector<Part> parts_;
  double factor_ = 0;
};

// The largest |score| that q, k could give (Cauchy-Schwarz), at least 1. 1 where they are no
// inputs.
[[nodiscard]] double largest_score(const Stmt& stmt, const TensorMap& inputs);

// The largest finite |logarithm of a sum of weights| of a leaf with scores, at least 1: an operand
// or, where the leaf makes it, a target.
[[nodiscard]] double largest_logsum(const Stmt& stmt, const TensorMap& inputs,
                                    const TensorMap& results);

}  // namespace harpe
