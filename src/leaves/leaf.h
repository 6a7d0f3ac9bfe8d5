#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace harpe {

// How contributions to one block combine. Store: there is exactly one contribution.
enum class Monoid : std::uint8_t { Store, Sum, Max, Lse };

// The leaf functions that Harpe supports, in the order of their table.
enum class Leaf : std::uint8_t {
  Matmul,
  AttentionForward,
  AttentionBackward,
  RowDot,
  Copy,
  Silu,
  Relu,
  Gelu,
  Add,
  Mul,
  SiluMul,
  RmsScale,
  AddRmsNorm,
  TopK,
  LimitChoices,
  GatherRows,
  CombineRows,
};

// Floating-point operations of one point of the iteration space, unless the program declares
// another number for the leaf.
constexpr double kFlopsOfPoint = 2;

// Which dimension of a leaf's work an axis of its iteration space is (plan/work.h).
enum class WorkPart : std::uint8_t { Batch, Rows, Columns, Depth };

// The cost shape of a leaf: the part of an axis depends on which of the first two operands have it.
// By default every axis is rows, as for leaves that stream through memory.
struct WorkShape {
  WorkPart both = WorkPart::Rows;
  WorkPart first = WorkPart::Rows;
  WorkPart second = WorkPart::Rows;
  WorkPart neither = WorkPart::Rows;
  // The part of an axis that the first target lacks, whichever operand has it.
  std::optional<WorkPart> summed = {};
  // Positions in the sequence, the second of four dimensions of the first operand, are rows,
  // whichever operands have them. That operand's last dimension is depth, which no axis runs over.
  bool has_positions = false;
};

// The definition of a leaf function, independent of kernels: its arity, monoid, masks and cost
// shape. Axis letters are positions in the statement's buffers, so that a program may choose the
// names of its axes and buffers.
//   matmul(a, b) -> c             c[M, N] sum= a[M, K] * b[K, N], axes by name; summed over what a
//                                 and b have and c lacks
//
//   attn_fwd(q, k, v) -> (o, l)   lse= softmax(scale * q k^T) v, with q[B, Q, (H, G), D],
//                                 k[B, K, H, D], v[B, K, H, Dv], o like q with Dv, l[B, (H, G), Q]
//                                 f32, natural log; scale = attr or 1/sqrt(D). q, o and l may lack
//                                 Q: one position each, under no mask of queries
//
//   attn_bwd(q, k, v, do, l, d) -> (dq, dk, dv)   sum= the gradients of attn_fwd, where do is that
//                                 of o, l its result and d = rowdot(o, do): with p = e^(scale q k^T
//                                 - l) and s = p (do v^T - d), dq = scale s k, dk = scale s^T q,
//                                 dv = p^T do. Shapes as in attn_fwd, d as l. A row whose l is -inf
//                                 sees nothing.
//
//   rowdot(a, b) -> c             c = a b summed over the one axis that c lacks
//   copy(x) -> y                  y = x
//   silu relu gelu (x) -> y       y = x / (1 + e^-x), max(x, 0), x Phi(x) with the normal
//                                 distribution's Phi
//   add mul silu_mul (a, b) -> y    y = a + b, a b, silu(a) b
//   rms_scale(x, s; length, eps) -> y   y = x / sqrt(s / length + eps): with s = rowdot(x, x) over
//                                 `length` features the root-mean-square norm; eps = attr or 1e-6
//                                 These are pointwise: an operand that lacks an axis of y has one
//                                 value along it.
//
//   add_rms_norm(x, r, w; eps) -> (s, y)   s = x + r, rounded to its type, and
//                                 y = s w / sqrt(mean of s^2 + eps) over the one axis of w[N]: the
//                                 residual connection and its root-mean-square norm; eps = attr or
//                                 1e-6
//
//   topk(x) -> (i, w)             of every x[T, E] the Kc largest, ties to the lower e, in
//                                 descending order: i[T, Kc] their e, w[T, Kc] = softmax over them
//   limit_choices(i; capacity, experts) -> j   with i[Ta, Kc] of all tokens and j[T, Kc]: the first
//                                 `capacity` choices of every expert, by token, then by k; other
//                                 choices, and experts from `experts` on, become -1, which is no
//                                 choice
//   gather_rows(x, i) -> y        through route R by i: y[E, C, H] = x[T=R.T, H], with
//                                 i[T=R.T, Kc]; slots that no choice takes hold nothing
//   combine_rows(y, i, w) -> z    sum= over the choices: z[T, H] += w[T, Kc] * y[E=R.E, C=R.C, H];
//                                 a choice without a slot adds nothing
struct LeafContract {
  Leaf leaf;
  std::string_view name;
  int operands;
  int targets;
  Monoid monoid;
  bool takes_masks = false;
  // For a leaf with weights e^(scale * a b), where a and b are its first operands: the operand that
  // holds the logarithms of the weights' sums, or kOwnSums if the leaf computes them. Else
  // kNoScores.
  int sums = kNoScores;
  bool pointwise = false;  // each target element depends on the operands' at its place
  int index = kNoIndex;    // for a leaf that follows a route: the operand with the route's index
  int choices = kNoIndex;  // the target that holds choices, not numbers
  bool computes = true;    // buffers other than index and choices are floating-point
  bool moves = false;      // each element of the target is a copy of an operand's element
  WorkShape work = {};

  static constexpr int kNoIndex = -1;
  static constexpr int kNoScores = -2;
  static constexpr int kOwnSums = -1;
  [[nodiscard]] constexpr bool has_scores() const { return sums != kNoScores; }
  [[nodiscard]] constexpr bool is_routed() const { return index != kNoIndex; }
};

// In the order of Leaf.
[[nodiscard]] std::span<const LeafContract> all_leaf_contracts();
// Null for a name that only programs declare.
[[nodiscard]] const LeafContract* find_leaf_contract(std::string_view name);

[[nodiscard]] std::string_view print(Leaf leaf);  // "matmul"
[[nodiscard]] bool is_leaf(std::string_view name, Leaf leaf);

}  // namespace harpe
