#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/program.h"
#include "ir/tensor.h"
#include "support/diag.h"

namespace harpe {

struct TimeLimit;

// The meaning of a program: statements in order on whole tensors, every leaf in f64 by the textbook
// formula (softmax in two passes), without blocking, schedule or library. It is the independent
// reference of checked runs and of the numerics tests.

// Which rows to compute. A row is one point of a leaf's row axes (matmul: an M; attn_fwd: a (b,
// head, q); attn_bwd: that, or a (b, head, key)).
struct RowSample {
  std::uint64_t seed = 0;
  std::int64_t rows = 256;                  // per output; always includes block borders
  std::vector<std::int64_t> query_borders;  // positions along the row axis to include
};

// Assumptions about a schedule that the scales rely on (ir/interpret_sizes.h).
struct Roundings {
  double error = 0x1p-8;         // relative error of a temporary
  std::set<std::string> inputs;  // inputs rounded on their way; others arrive exact
};

// How large the numbers inside a leaf with scores become.
struct ScoreSizes {
  double score = 1;   // |q k^T * scale|, at most (Cauchy-Schwarz), and at least 1
  double logsum = 1;  // of a row's logsumexp, written or read, and at least 1
};

struct Meaning {
  TensorMap outputs;  // f64; NaN in rows that were not computed
  // Per output: flat indices (over all dimensions but the last) of the computed rows; empty if all
  // rows were computed.
  std::map<std::string, std::vector<std::int64_t>> sampled_rows;
  // Per output and element: the magnitude that the added terms would have if they were independent
  // (ir/interpret_sizes.h); NaN if the leaf does not report it. The sum itself may be smaller,
  // because terms may cancel, here or in a temporary that was read.
  std::map<std::string, std::vector<double>> scales;
  std::map<std::string, double> largest;     // finite magnitude of each temporary
  std::map<std::string, ScoreSizes> scores;  // by the first target of the leaf
  std::map<std::string, double> roots;       // the least divisor of each norm, by first target
};

// Requires: program is ground; `inputs` holds every `in` buffer with its whole shape. Threads:
// computes on up to `threads` threads, including the caller's, and only that one polls `limit`,
// about every ten milliseconds. Errors: P201 to P207, P220, P221; I505 `limit` expired.
[[nodiscard]] Checked<Meaning> interpret(const Program& program, const TensorMap& inputs,
                                         const std::optional<RowSample>& sample, int threads,
                                         const Roundings& roundings = {},
                                         const TimeLimit* limit = nullptr);

// Floating-point operations of the program without masks (leaf `flops`, or 2 per iteration point if
// undeclared).
[[nodiscard]] double flops_of(const Program& program);

}  // namespace harpe
