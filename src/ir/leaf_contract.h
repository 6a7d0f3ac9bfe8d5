#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "ir/program.h"

namespace harpe {

// What a leaf function is, apart from any kernel: its arity, monoid and masks. Axis letters are
// positions in the statement's buffers, so that a program may name its axes and buffers as it
// likes.
//   matmul(a, b) -> c             c[M, N] sum= a[M, K] * b[K, N], axes by name; summed over what a
//                                 and b have and c lacks
//
//   attn_fwd(q, k, v) -> (o, l)   lse= softmax(scale * q k^T) v, with q[B, Q, (H, G), D],
//                                 k[B, K, H, D], v[B, K, H, Dv], o like q with Dv, l[B, (H, G), Q]
//                                 f32, natural log; scale = attr or 1/sqrt(D). q, o and l may lack
//                                 Q: one position each, under no mask
//
//   attn_bwd(q, k, v, do, l, d) -> (dq, dk, dv)   sum= the gradients of attn_fwd, where do is that
//                                 of o, l its result and d = rowdot(o, do): with p = e^(scale q k^T
//                                 - l) and s = p (do v^T - d), dq = scale s k, dk = scale s^T q,
//                                 dv = p^T do. Shapes as in attn_fwd, d as l. A row whose l is -inf
//                                 sees nothing.
//
//   rowdot(a, b) -> c             c = a b summed over the one axis that c lacks
//   copy(x) -> y                  y = x
struct LeafContract {
  std::string_view name;
  int operands;
  int targets;
  Monoid monoid;
  bool takes_masks;
  bool remote_operands;  // a kernel exists that reads operands in place on another rank (`inline`)
  bool remote_targets;   // a kernel exists that writes or adds in place on another rank (`inline`)
  bool chunkable;        // a kernel exists that consumes operands chunk by chunk
  // Of a leaf that weighs by e^(scale * a b), a and b its first operands: which operand holds the
  // logarithms of the weights' sums, or kOwnSums where it makes them. Else kNoScores.
  int sums = kNoScores;

  static constexpr int kNoScores = -2;
  static constexpr int kOwnSums = -1;
  [[nodiscard]] constexpr bool has_scores() const { return sums != kNoScores; }
};

[[nodiscard]] std::span<const LeafContract> all_leaf_contracts();
[[nodiscard]] const LeafContract* find_leaf_contract(std::string_view name);

}  // namespace harpe
