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

// The meaning of a program: executed in order, whole tensors, every leaf in f64 by the textbook
// formula (softmax in two passes), with no blocking, no schedule and no library. The independent
// reference of checked runs and of the numerics tests.

// Which rows to compute. A row is one point of a leaf's row axes (matmul: an M; attn_fwd: a (b,
// head, q); attn_bwd: that, or a (b, head, key)).
struct RowSample {
  std::uint64_t seed = 0;
  std::int64_t rows = 256;                  // per output; block borders are always among them
  std::vector<std::int64_t> query_borders;  // positions along the row axis that must be included
};

// What the scales take for granted of a schedule (ir/interpret_sizes.h).
struct Roundings {
  double error = 0x1p-8;         // by how much of its size a temporary may be off
  std::set<std::string> inputs;  // that are rounded on their way; the others arrive as they are
};

// How large the numbers inside a leaf with scores get.
struct ScoreSizes {
  double score = 1;   // |q k^T * scale|, at most (Cauchy-Schwarz), and at least 1
  double logsum = 1;  // of a row's logsumexp, made or read, and at least 1
};

struct Meaning {
  TensorMap outputs;  // f64; rows that were not computed hold NaN
  // Per output: flat indices (over all dimensions but the last) of the rows that were computed;
  // empty when all were.
  std::map<std::string, std::vector<std::int64_t>> sampled_rows;
  // Per output and element: what the terms that were added up there would measure were they
  // independent (ir/interpret_sizes.h); NaN where the leaf does not say. Terms may cancel, here or
  // in a temporary that was read: the sum says less.
  std::map<std::string, std::vector<double>> scales;
  std::map<std::string, double> largest;     // finite magnitude of each temporary
  std::map<std::string, ScoreSizes> scores;  // by the first target of the leaf
  std::map<std::string, double> roots;       // the least that each norm divides by, by first target
};

// Requires: program is ground; `inputs` holds every `in` buffer with its whole shape.
// Threads: computes on up to `threads`, the caller's among them, which alone asks `limit`, every
// ten milliseconds or so. Errors: P201 to P207, P220, P221; I505 `limit` is over.
[[nodiscard]] Checked<Meaning> interpret(const Program& program, const TensorMap& inputs,
                                         const std::optional<RowSample>& sample, int threads,
                                         const Roundings& roundings = {},
                                         const TimeLimit* limit = nullptr);

// Floating-point operations the program performs when nothing is masked (leaf `flops`, or 2 per
// iteration point where undeclared).
[[nodiscard]] double flops_of(const Program& program);

}  // namespace harpe
