#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "bench/cuda/attention_case.h"

namespace harpe::bench {

// Inputs of the backward pass on the host: rows of heads x columns; lse and delta are rows of batch
// x heads.
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

// One element of a gradient, with the error bound of a kernel.
struct BoundedValue {
  double value = 0;
  double bound = 0;
};
using BoundedRow = std::vector<BoundedValue>;

// In f64, with the error bound of a kernel that computes scores and sums in f32 and rounds weights
// p and score gradients s to bf16 before it multiplies with them:
// - a score has error d, as in attention_reference.cuh, plus roundings of lse; p has that relative
//   error; a product do v^T has an error like a score's.
// - s = p (do v^T - delta) has p times the product's error, plus the relative error of p.
// - roundings to bf16 have random signs: they move a sum by kTail roundoffs of the root of its
//   squares, or by a roundoff of the sum of its sizes; so do additions of 16 columns each.
[[nodiscard]] BoundedRow query_gradient(const AttentionCase& what, const BackwardInputs& inputs,
                                        const HeadRow& at);

struct KeyGradients {
  BoundedRow dk;
  BoundedRow dv;
};
[[nodiscard]] KeyGradients key_gradients(const AttentionCase& what, const BackwardInputs& inputs,
                                         const HeadRow& at);

// The number of keys that query row 0 sees, counted from key 0: at least `low`, at most `high`.
struct SeenBand {
  std::int64_t low = 0;
  std::int64_t high = 0;
};
[[nodiscard]] SeenBand band_of(const AttentionCase& what);

}  // namespace harpe::bench
