#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "bench/cuda/attention_case.h"

namespace harpe::bench {

// Inputs of attention's gradients on the host, rows of heads x columns; lse and delta rows of
// batch x heads.
struct BackwardInputs {
  std::vector<float> q;
  std::vector<float> k;
  std::vector<float> v;
  std::vector<float> d_o;
  std::vector<float> lse;
  std::vector<float> delta;
};

// A row of a head, of a batch entry.
struct HeadRow {
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t row = 0;
};

// One element of a gradient, and how far a kernel may be from it.
struct BoundedValue {
  double value = 0;
  double bound = 0;
};
using BoundedRow = std::vector<BoundedValue>;

// In f64, and how far a kernel may be off that takes scores and sums in f32 and rounds weights p
// and gradients s of scores to bf16 before it multiplies with them:
// - a score is off by d, as in attention_reference.cuh, and by roundings of lse; p by as much,
//   relatively; a product do v^T is off like a score.
// - s = p (do v^T - delta) is off by p times the product's error, and relatively like p.
// - roundings to bf16 are random in sign: they move a sum by kTail roundoffs of the root of its
//   squares, or by a roundoff of the sum of its sizes; so do additions of 16 columns each.
[[nodiscard]] BoundedRow query_gradient(const AttentionCase& what, const BackwardInputs& inputs,
                                        const HeadRow& at);

struct KeyGradients {
  BoundedRow dk;
  BoundedRow dv;
};
[[nodiscard]] KeyGradients key_gradients(const AttentionCase& what, const BackwardInputs& inputs,
                                         const HeadRow& at);

// Keys that query row 0 sees, counted from key 0: at least `low`, at most `high`.
struct SeenBand {
  std::int64_t low = 0;
  std::int64_t high = 0;
};
[[nodiscard]] SeenBand band_of(const AttentionCase& what);

}  // namespace harpe::bench
