#include <gtest/gtest.h>

#include "tests/unit/lower/fixture.h"

namespace harpe::test {
namespace {

struct Parts {
  std::string decls = "";
  std::string dispatch = "over (E, C) {\n    Xe = copy(X[T=R.T])";
  std::string layout = "  layout C slab(c0, t0)\n";
  std::string node = "grain e1";
  std::string gpu = "grain e1";
};

std::string dispatch(const Parts& parts) {
  return refusal(Source{
      .program =
          "program moe {\n  axis T = 64\n  axis Kc = 2\n  axis E = 16\n  axis C = 64\n"
          "  buffer X : f32[T] in\n  buffer Idx : i32[T, Kc] in\n"
          "  buffer Xe : f32[E, C] out\n  route R : (E, C) <- (T, Kc) by Idx\n  leaf pick\n" +
          parts.decls + "  nest dispatch " + parts.dispatch + "\n  }\n}\n",
      .mesh = "mesh two = node:2, gpu:2\n",
      .form = "commir form for moe on two {\n"
              "  split T = t0:2 * tg:2 * t1:_\n  split E = e0:2 * eg:2 * e1:2 * e2:_\n"
              "  split C = c0:2 * cg:2 * c1:_\n" +
              parts.layout +
              "  place X[t0@node, tg@gpu]\n  place Xe[e0@node, eg@gpu]\n  nest dispatch {\n"
              "    par e0 on node\n    par eg on gpu\n    stage X over node direct " +
              parts.node + "\n    stage X over gpu direct " + parts.gpu + "\n    leaf\n  }\n}\n"});
}

TEST(Routes, pass_a_part_on_and_cut_a_block_once) {
  EXPECT_EQ(dispatch({}), "accepted");
  EXPECT_EQ(dispatch({.gpu = ""}), "accepted");
  EXPECT_EQ(dispatch({.node = ""}), "accepted");
  EXPECT_EQ(dispatch({.node = "grain e1", .gpu = "grain cg"}),  // F224
            "error[F224]: stage of `X` over gpu is cut by `cg`, and the one before it by `e1`; cut "
            "both by one digit, or only the last");
}

TEST(Routes, tie_slots_to_tokens_once) {
  const auto slab = [](const std::string& digits) {
    return dispatch({.layout = "  layout C slab(" + digits + ")\n"});
  };
  EXPECT_EQ(slab("c0, e0"),
            "error[F109]: layout of `C`: no route has slots along it for the tokens of `E`");
  EXPECT_EQ(slab("c0, t0, c0, tg"), "error[F109]: layout of `C`: it ties `c0` or `tg` twice");
}

TEST(Routes, are_refused_where_no_rule_says_what_meets) {  // F306
  const auto with = [](const std::string& nest, const std::string& decls) {
    return dispatch({.decls = decls, .dispatch = nest});
  };
  const std::string refused = "error[F306]: nest `dispatch` ";
  EXPECT_EQ(with("over (E, C) {\n    Xe = pick(X[T=R.T], X[T=Q.T])",
                 "  route Q : (E, C) <- (T, Kc) by Idx\n"),
            refused + "goes through routes `R` and `Q`");
  EXPECT_EQ(with("over (E, C) {\n    Xe = copy(X[T=Q.T])", "  route Q : (E) <- (T) by Idx\n"),
            refused +
                "goes through route `Q`, which does not relate (expert, slot) to (token, "
                "choice)");
  EXPECT_EQ(with("over (T, Kc, E) {\n    Y sum= pick(Z[E=R.E, C=R.C])",
                 "  buffer Z : f32[E, C] in\n  buffer Y : f32[T] out\n"),
            refused + "runs over the choices of route `R` and its experts");
  EXPECT_EQ(with("over (E, C) {\n    Y[T=R.T] sum= pick(X[T=R.T])", "  buffer Y : f32[T] out\n"),
            refused + "writes `Y` by other axes than its own");
  EXPECT_EQ(with("over (E, C) whole (T) {\n    Xe = pick(X[T=R.T]) where causal(C, T)", ""),
            refused + "masks by `T`, which it does not run over");
}

TEST(Routes, store_over_experts_only_all_at_once) {
  const auto combine = [](const std::string& loop) {
    return refusal(Source{
        .program = "program rows {\n  axis T = 64\n  axis Kc = 2\n  axis E = 16\n  axis C = 64\n"
                   "  buffer Xe : f32[E, C] in\n  buffer Idx : i32[T, Kc] in\n"
                   "  buffer Y : f32[T, Kc] out\n  route R : (E, C) <- (T, Kc) by Idx\n"
                   "  nest combine over (T, Kc) {\n    Y = copy(Xe[E=R.E, C=R.C])\n  }\n}\n",
        .mesh = "mesh one = gpu:2\n",
        .form = "commir form for rows on one {\n  split E = e0:2 * e1:_\n  nest combine {\n" +
                loop + "    leaf\n  }\n}\n"});
  };
  EXPECT_EQ(combine(""), "accepted");
  EXPECT_EQ(combine("    for e0\n"),
            "error[F215]: output `Y` of nest `combine` lacks axis `E` and its statement has no "
            "monoid; write `sum=` or give the target the axis");
}

}  // namespace
}  // namespace harpe::test
