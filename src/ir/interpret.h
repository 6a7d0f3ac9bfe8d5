#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "ir/program.h"
#include "ir/tensor.h"
#include "support/diag.h"

namespace harpe {

// The meaning of a program: executed in order, whole tensors, every leaf in f64 by the textbook
// formula (softmax in two passes), with no blocking, no schedule and no library. The independent
// reference of `--check` and of the numerics tests.

// Which rows to compute. A row is one point of a leaf's row axes (matmul: an M; attn_fwd: a (b,
// head, q); attn_bwd: that, or a (b, head, key)).
struct RowSample {
  std::uint64_t seed = 0;
  std::int64_t rows = 256;                  // per output; block borders are always among them
  std::vector<std::int64_t> query_borders;  // positions along the row axis that must be included
};

struct Meaning {
  TensorMap outputs;  // f64; rows that were not computed hold NaN
  // Per output: flat indices (over all dimensions but the last) of the rows that were computed;
  // empty when all were.
  std::map<std::string, std::vector<std::int64_t>> sampled_rows;
  // Per output and row: what the terms that were added up there would measure were they
  // independent, per element; NaN where the leaf does not say. Terms may cancel: the sum says less.
  std::map<std::string, std::vector<double>> scales;
  std::map<std::string, double> largest;  // finite magnitude of each temporary
};

// Requires: program is ground; `inputs` holds every `in` buffer with its whole shape.
// Threads: uses up to `threads` of its own, joined before it returns.
[[nodiscard]] Checked<Meaning> interpret(const Program& program, const TensorMap& inputs,
                                         const std::optional<RowSample>& sample, int threads);

// Floating-point operations the program performs when nothing is masked (leaf `flops`, or 2 per
// iteration point where undeclared).
[[nodiscard]] double flops_of(const Program& program);

}  // namespace harpe
