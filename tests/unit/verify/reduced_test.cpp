#include "verify/reduced.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "lower/lower.h"
#include "tests/unit/verify/plans.h"

namespace harpe::test {
namespace {

constexpr std::string_view kAttention = R"(
program attn {
  axis B = 4
  axis Sq = 65536 grain 128
  axis Skv = 65536 grain 128
  axis H = 32
  axis G = 1
  axis D = 128
  buffer Q : bf16[B, Sq, (H, G), D] in
  buffer K : bf16[B, Skv, H, D] in
  buffer V : bf16[B, Skv, H, D] in
  buffer O : bf16[B, Sq, (H, G), D] out
  buffer L : f32[B, (H, G), Sq] out
  nest fwd over (B, H, G, Sq, Skv) whole (D) {
    (O, L) lse= attn_fwd(Q, K, V) where causal(Sq, Skv)
  }
}
mesh two = node:16, gpu:8
)";

std::vector<ReducedCase> cases_of(const std::string& form) {
  const HandPlan hand(std::string(kAttention) + form);
  const auto cases = reduced_cases(hand.plan.program, hand.plan.mesh, hand.plan.form);
  EXPECT_TRUE(cases.ok()) << render(cases.error());
  return cases.ok() ? *cases : std::vector<ReducedCase>{};
}

std::int64_t size(const ReducedCase& small, const std::string& axis) {
  return size_of(*find_axis(small.program, axis));
}

std::int64_t extent(const ReducedCase& small, const std::string& axis, std::size_t digit) {
  return find_split(small.form, axis)->digits.at(digit).extent.value_or(1);
}

constexpr std::string_view kDoubleRing = R"(
commir double_ring for attn on two {
  split Sq = q0:16 * q1:8 * qh:2 * q2:_
  split Skv = k0:16 * k1:8 * k2:_
  place Q[q0@node, q1@gpu]
  place K[k0@node, k1@gpu]
  place V[k0@node, k1@gpu]
  place O[q0@node, q1@gpu]
  place L[q0@node, q1@gpu]
  nest fwd {
    par q0 on node
    par q1 on gpu
    for k0 skew node
    stage K over node relay by src depth 2
    stage V over node relay by src depth 2
    for k1 skew gpu
    stage K over gpu relay by src depth 2
    stage V over gpu relay by src depth 2
    leaf
  }
}
)";

TEST(Reduced, cuts_mesh_axes_and_their_digits_together) {
  const std::vector<ReducedCase> cases = cases_of(std::string(kDoubleRing));
  ASSERT_EQ(cases.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t cut = i == 0 ? 3 : 4;
    EXPECT_EQ(cases[i].mesh.axes[0].size, cut);
    EXPECT_EQ(cases[i].mesh.axes[1].size, cut);
    EXPECT_EQ(extent(cases[i], "Sq", 0), cut);
    EXPECT_EQ(extent(cases[i], "Skv", 1), cut);
    EXPECT_EQ(extent(cases[i], "Sq", 2), 2) << "what is small stays";
    EXPECT_EQ(size(cases[i], "Sq"), cut * cut * 2 * 2 * 128) << "two grains a block";
    EXPECT_EQ(size(cases[i], "Skv"), size(cases[i], "Sq")) << "equal lengths stay equal";
    EXPECT_EQ(size(cases[i], "H"), 32) << "an axis nobody cuts stays";
  }
}

TEST(Reduced, still_lowers_and_verifies) {
  for (const ReducedCase& small : cases_of(std::string(kDoubleRing))) {
    const auto plan = lower(small.program, small.mesh, small.form);
    ASSERT_TRUE(plan.ok()) << render(plan.error());
    EXPECT_EQ(finding(*plan), "verified");
  }
}

TEST(Reduced, keeps_a_digit_on_two_mesh_axes_as_long_as_both) {
  const auto cases = cases_of(R"(
commir flat for attn on two {
  split Sq = q0:128 * q1:_
  place Q[q0@(node, gpu)]
  place O[q0@(node, gpu)]
  place L[q0@(node, gpu)]
  nest fwd {
    par q0 on (node, gpu)
    leaf
  }
}
)");
  ASSERT_EQ(cases.size(), 2U);
  EXPECT_EQ(extent(cases[0], "Sq", 0), 9);
  EXPECT_EQ(extent(cases[1], "Sq", 0), 16);
}

TEST(Reduced, cuts_slots_as_their_tokens) {
  const HandPlan hand(R"(
program moe {
  axis T = dyn 8192
  axis Kc = 8
  axis E = 256
  axis C = dyn 4096 of E
  buffer X : bf16[T] in
  buffer Idx : i32[T, Kc] in
  buffer Xe : bf16[E, C] out
  route R : (E, C) <- (T, Kc) by Idx
  nest dispatch over (E, C) {
    Xe = copy(X[T=R.T])
  }
}
mesh two = node:5, gpu:6
commir push for moe on two {
  split T = t0:30 * t1:_
  split E = e0:30 * e1:_
  split C = c0:30 * c1:_
  layout C slab(c0, t0)
  place X[t0@(node, gpu)]
  place Xe[e0@(node, gpu)]
  nest dispatch {
    par e0 on (node, gpu)
    stage X over (node, gpu) direct
    leaf
  }
}
)");
  const auto cases = reduced_cases(hand.plan.program, hand.plan.mesh, hand.plan.form);
  ASSERT_TRUE(cases.ok()) << render(cases.error());
  ASSERT_EQ(cases->size(), 2U);
  EXPECT_EQ(extent(cases->at(0), "C", 0), 9);
  EXPECT_EQ(extent(cases->at(1), "C", 0), 16);
  for (const ReducedCase& small : *cases) {
    const auto plan = lower(small.program, small.mesh, small.form);
    ASSERT_TRUE(plan.ok()) << render(plan.error());
    EXPECT_EQ(finding(*plan), "verified");
  }
}

TEST(Reduced, turns_a_skewed_loop_a_whole_number_of_times) {
  const auto cases = cases_of(R"(
commir turns for attn on two {
  split Sq = q0:8 * q1:_
  split Skv = k0:40 * k1:_
  place Q[q0@gpu]
  place O[q0@gpu]
  place L[q0@gpu]
  nest fwd {
    par q0 on gpu
    for k0 skew gpu
    leaf
  }
}
)");
  ASSERT_EQ(cases.size(), 2U);
  EXPECT_EQ(extent(cases[0], "Skv", 0), 9);
  EXPECT_EQ(extent(cases[1], "Skv", 0), 16);
}

TEST(Reduced, refines_the_cut_mesh) {
  const auto cases = cases_of(R"(
commir refined for attn on two {
  refine gpu = a:4 * b:2
  split Sq = q0:4 * q1:_
  place Q[q0@a]
  place O[q0@a]
  place L[q0@a]
  nest fwd {
    par q0 on a
    leaf
  }
}
)");
  ASSERT_EQ(cases.size(), 2U);
  EXPECT_EQ(cases[0].mesh.axes[1].size, 6);
  EXPECT_EQ(cases[0].form.refines[0].parts[0].size, 3);
  EXPECT_EQ(cases[1].mesh.axes[1].size, 8);
}

TEST(Reduced, gives_one_case_where_there_is_nothing_to_cut) {
  const RingGemm p;
  const auto cases = reduced_cases(p.hand.plan.program, p.hand.plan.mesh, p.hand.plan.form);
  ASSERT_TRUE(cases.ok());
  EXPECT_EQ(cases->size(), 1U);
}

TEST(Reduced, keeps_uneven_blocks_uneven_and_empty_ones_empty) {
  HandPlan hand(std::string(kAttention) + std::string(kDoubleRing));
  for (Decl& decl : hand.plan.program.decls) {
    if (auto* const axis = std::get_if<Axis>(&decl); axis != nullptr) {
      if (axis->name == "Sq") axis->size = Poly{std::int64_t{65537}, {}};
      if (axis->name == "Skv") axis->size = Poly{std::int64_t{100}, {}};
    }
  }
  const auto cases = reduced_cases(hand.plan.program, hand.plan.mesh, hand.plan.form);
  ASSERT_TRUE(cases.ok());
  EXPECT_EQ(size((*cases)[0], "Skv"), 8) << "nine blocks, one empty";
  EXPECT_NE(size((*cases)[0], "Sq") % (3 * 3 * 2), 0);
  EXPECT_GT(size((*cases)[0], "Sq"), size((*cases)[0], "Skv")) << "the mask looks the same way";
}

TEST(Reduced, refuses_a_table_it_would_have_to_cut) {
  const HandPlan hand(std::string(kAttention) + R"(
commir table for attn on two {
  split Sq = q0:8 * q1:_
  layout Sq table(0, 2, 4, 6, 1, 3, 5, 7)
  nest fwd {
    leaf
  }
}
)");
  const auto cases = reduced_cases(hand.plan.program, hand.plan.mesh, hand.plan.form);
  ASSERT_FALSE(cases.ok());
  EXPECT_EQ(render(cases.error()),
            "error[V202]: the reduced form of the layout table of `Sq` cannot be verified");
}

TEST(Reduced, refuses_a_digit_on_axes_that_no_longer_agree) {
  const HandPlan hand(std::string(kAttention) + R"(
commir torn for attn on two {
  refine node = a:4 * b:4
  split Sq = q0:8 * q1:_
  split H = h0:16 * h1:_
  place Q[q0@gpu, h0@(a, b)]
  nest fwd {
    par h0 on (a, b)
    leaf
  }
}
)");
  EXPECT_TRUE(reduced_cases(hand.plan.program, hand.plan.mesh, hand.plan.form).ok());
  HandPlan torn = hand;
  torn.plan.mesh.axes[1].size = 16;
  torn.plan.form.splits[0].digits[0].extent = 16;
  torn.plan.form.places[0].at = {{.digit = "q0", .axes = {"gpu"}}};
  std::get<Par>(torn.plan.form.nests[0].items[0]) = {.digit = "q0", .axes = {"a", "b"}};
  const auto cases = reduced_cases(torn.plan.program, torn.plan.mesh, torn.plan.form);
  ASSERT_FALSE(cases.ok());
  EXPECT_EQ(render(cases.error()),
            "error[V202]: the reduced form, whose digit `q0` is spread over mesh axes of different "
            "sizes, cannot be verified");
}

}  // namespace
}  // namespace harpe::test
