#pragma once

#include <string>

#include "tests/support/hand_plan.h"
#include "verify/verify.h"

namespace harpe::test {

// Plans on two ranks that verify, each small enough to name every task by its number.

// C = A B, K and N on the ranks: each rank computes with its own part of A, fetches the other,
// adds.
//   0 1 entries   2 3 copies   4 5 computes (init)   6 7 computes (add)   8 9 finalises
//   10 11 exits
struct RingGemm {
  RingGemm();
  HandPlan hand;
  std::vector<AllocId> a, b, c, stage, acc;
};

// The same on three ranks, through NICs: each rank puts its part of A to the next rank, then to the
// one behind it, with a signal behind each put.
//   0-2 entries   3-5 puts to the next   6-8 puts to the one behind   9-11 computes of the own part
//   12-14 of the next rank's   15-17 of the one behind   18-20 finalises   21-23 exits
struct PushGemm {
  PushGemm();
  HandPlan hand;
};

// Attention with keys on the ranks: each rank sends the partial state (o, l) of the other's head.
//   0 1 entries   2 3 computes   4 5 copies   6 7 finalises   8 9 exits
struct SplitDecode {
  SplitDecode();
  HandPlan hand;
  std::vector<AllocId> q, k, v, o, l, acc_o, acc_l, in_o, in_l;
};

// y = x, gathered by a collective.
//   0 1 entries   2 3 members of group 0   4 5 computes   6 7 exits
struct Gather {
  Gather();
  HandPlan hand;
  std::vector<AllocId> x, y, stage;
};

// C = A B, K on the ranks, C reduced and scattered by a collective.
//   0 1 entries   2 3 computes   4 5 members of group 0   6 7 finalises   8 9 exits
struct Reduce {
  Reduce();
  HandPlan hand;
  std::vector<AllocId> a, b, c, acc, sum;
};

// Causal attention on one rank with more queries than keys: the first queries see nothing.
//   0 entry   1 compute   2 finalise   3 init   4 exit
struct Masked {
  Masked();
  HandPlan hand;
  AllocId q, k, v, o, l, acc_o, acc_l;
};

// C = A B with K on the ranks; each rank keeps its part of the sum at home.
//   0 1 entries   2 3 computes   4 5 finalises   6 7 exits
struct Open {
  Open();
  HandPlan hand;
  std::vector<AllocId> a, b, c, acc;
};

// t = A B, z = t, on one rank: a value between two nests.
//   0 entry   1 compute mm   2 finalise   3 compute mv   4 exit
struct Chain {
  Chain();
  HandPlan hand;
  AllocId a, b, t, z, acc;
};

// t = x, then t = y, then z = t, on one rank; a copy keeps the first t.
//   0 entry   1 compute first   2 copy   3 compute second   4 compute third   5 exit
struct Twice {
  Twice();
  HandPlan hand;
  AllocId x, y, t, z, old;
};

// The full text of the finding, or "verified".
[[nodiscard]] std::string finding(const Plan& plan);

}  // namespace harpe::test
