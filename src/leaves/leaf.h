#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace harpe {

// How contributions to one block combine. Store: there is exactly one.
enum class Monoid : std::uint8_t { Store, Sum, Max, Lse };

// The leaf functions that Harpe knows, in the order of their table.
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

// Floating-point operations of one point of the iteration space, where the program declares no
// other number for the leaf.
constexpr double kFlopsOfPoint = 2;

// Which dimension of a leaf's work an axis of its iteration space is (plan/work.h).
enum class WorkPart : std::uint8_t { Batch, Rows, Columns, Depth };

// The cost shape of a leaf: which part an axis is, by who of its first two operands has it. By
// default every axis is rows, as for leaves that stream through memory.
struct WorkShape {
  WorkPart both = WorkPart::Rows;
  WorkPart first = WorkPart::Rows;
  WorkPart second = WorkPart::Rows;
  WorkPart neither = WorkPart::Rows;
  // Of an axis that the first target lacks: whichever operand has it.
  std::optional<WorkPart> summed = {};
  // Positions in the sequence, the second of four dimensions of the first operand, are rows,
  // whoever has them; that operand's last dimension is depth, which no axis runs over.
  bool has_positions = false;
};

// What a leaf function is, apart from any kernel: its arity, monoid, masks and cost shape. Axis
// letters are positions in the statement's buffers, so that a program may name its axes and buffers
// as it likes.
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
//   add_rms_norm(x, r, w; eps) -> (s, y)   s = x + r, rounded to its type, and y = s w / sqrt(mean
//   of
//                                 s^2 + eps) over the one axis of w[N]: the residual connection and
//                                 the root-mean-square norm behind it; eps = attr or 1e-6
//
//   topk(x) -> (i, w)             of every x[T, E] the Kc largest, ties to the lower e, in
//                                 descending order: i[T, Kc] their e, w[T, Kc] = softmax over them
//   limit_choices(i; capacity, experts) -> j   with i[Ta, Kc] of all tokens and j[T, Kc]: of every
//                                 expert the first `capacity` choices, by token, then by k; the
//                                 others, and experts from `experts`
//                                 on, become -1, which is no choice
//   gather_rows(x, i) -> y        through route R by i: y[E, C, H] = x[T=R.T, H], with i[T=R.T,
//   Kc];
//                                 slots that no choice takes hold nothing
//   combine_rows(y, i, w) -> z    sum= over the choices: z[T, H] += w[T, Kc] * y[E=R.E, C=R.C, H];
//                                 a choice without a slot adds nothing
struct LeafContract {
  Leaf leaf;
  std::string_view name;
  int operands;
  int targets;
  Monoid monoid;
  bool takes_masks = false;
  // Of a leaf that weighs by e^(scale * a b), a and b its first operands: which operand holds the
  // logarithms of the weights' sums, or kOwnSums where it makes them. Else kNoScores.
  int sums = kNoScores;
  bool pointwise = false;  // every element of the target from the operands' elements at its place
  int index = kNoIndex;    // of a leaf that follows a route: which operand is the route's index
  int choices = kNoIndex;  // which target holds choices, not numbers
  bool computes = true;    // with numbers: its buffers but index and choices are floating-point
  bool moves = false;      // each element of the target is one of an operand, as it is
  WorkShape work = {};

  static constexpr int kNoIndex = -1;
  static constexpr int kNoScores = -2;
  static constexpr int kOwnSums = -1;
  [[nodiscard]] constexpr bool has_scores() const { return sums != kNoScores; }
  [[nodiscard]] constexpr bool is_routed() const { return index != kNoIndex; }
};

// In the order of Leaf.
[[nodiscard]] std::span<const LeafContract> all_leaf_contracts();
// Null for a name that only a program declares.
[[nodiscard]] const LeafContract* find_leaf_contract(std::string_view name);

[[nodiscard]] std::string_view print(Leaf leaf);  // "matmul"
[[nodiscard]] bool is_leaf(std::string_view name, Leaf leaf);

}  // namespace harpe
