#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "ir/program.h"

namespace harpe {

// What a leaf function is, apart from any kernel: its arity, monoid and masks. Axis letters are
// positions in the statement's buffers, so that a program may name its axes and buffers as it
// likes.
//   matmul(a, b) -> c        c[M, N] sum= a[M, K] * b[K, N]        axes by name; reduction = a's
//   and b's common axis attn_fwd(q, k, v) -> (o, l)   lse= softmax(scale * q k^T) v    q[B, Q, (H,
//   G), D], k[B, K, H, D], v[B, K, H, Dv];
//                                 o like q with Dv, l[B, (H, G), Q] f32, natural log; scale = attr
//                                 or 1/sqrt(D)
//   copy(x) -> y                  y = x
struct LeafContract {
  std::string_view name;
  int operands;
  int targets;
  Monoid monoid;
  bool takes_masks;
  bool remote_operands;  // a kernel exists that reads operands in place on another rank (`inline`)
  bool chunkable;        // a kernel exists that consumes operands chunk by chunk
};

[[nodiscard]] std::span<const LeafContract> all_leaf_contracts();
[[nodiscard]] const LeafContract* find_leaf_contract(std::string_view name);

}  // namespace harpe
