// A mask's data is an operand: a plan that does not read it, or reads another block, is refused.
#include <gtest/gtest.h>

#include <algorithm>

#include "lower/lower.h"
#include "tests/unit/verify/plans.h"
#include "verify/reduced.h"

namespace harpe::test {
namespace {

constexpr std::string_view kPacked = R"(
program packed {
  axis B = 4
  axis Sq = 64
  axis Skv = 64
  axis H = 1
  axis G = 1
  axis D = 8
  axis S = 64
  buffer Q : f32[B, Sq, (H, G), D] in
  buffer K : f32[B, Skv, H, D] in
  buffer V : f32[B, Skv, H, D] in
  buffer seg : i32[B, S] in
  buffer O : f32[B, Sq, (H, G), D] out
  buffer L : f32[B, (H, G), Sq] out
  nest fwd over (B, H, G, Sq, Skv) whole (D, S) {
    (O, L) lse= attn_fwd(Q, K, V) where causal(Sq, Skv) and doc(Sq, Skv, seg)
  }
}
mesh two = dp:2, cp:2
commir ring for packed on two {
  split B = b0:2 * b1:_
  split Sq = q0:2 * q1:_
  split Skv = k0:2 * k1:_
  split S = s0:2 * s1:_
  place Q[b0@dp, q0@cp]
  place K[b0@dp, k0@cp]
  place V[b0@dp, k0@cp]
  place seg[b0@dp, s0@cp]
  place O[b0@dp, q0@cp]
  place L[b0@dp, q0@cp]
  nest fwd {
    par b0 on dp
    par q0 on cp
    stage seg over cp bulk
    for k0 skew cp
    stage K over cp relay by src depth 2
    stage V over cp relay by src depth 2
    leaf
  }
}
)";

constexpr std::string_view kPaged = R"(
program paged {
  axis B = 4
  axis Skv = 96
  axis H = 2
  axis G = 1
  axis D = 8
  axis Np = 12
  buffer q : f32[B, (H, G), D] in
  buffer k : f32[B, Skv, H, D] in
  buffer v : f32[B, Skv, H, D] in
  buffer pages : i32[B, Np] in
  buffer len : i32[B] in
  buffer o : f32[B, (H, G), D] out
  buffer l : f32[B, (H, G)] out
  nest dec over (B, H, G, Skv) whole (D, Np) {
    (o, l) lse= attn_fwd(q, k, v) where paged(Skv, 8, pages) and length(Skv, len)
  }
}
mesh six = x:6
commir split for paged on six {
  split Skv = k0:6 * k1:_
  place k[k0@x]
  place v[k0@x]
  nest dec {
    par k0 on x
    drain o over x bulk
    drain l over x bulk
    leaf
  }
}
)";

Plan plan_of(std::string_view text) {
  const HandPlan hand(text);
  Checked<Plan> plan = lower(hand.plan.program, hand.plan.mesh, hand.plan.form);
  EXPECT_TRUE(plan.ok()) << render(plan.error());
  return std::move(plan).value();
}

bool reads(const Plan& plan, const Task& task, const std::string& buffer) {
  return std::ranges::any_of(
      task.reads, [&](const Ref& ref) { return plan.allocs[ref.alloc.index()].buffer == buffer; });
}

TEST(DataMasks, are_read_by_every_computation) {
  for (const std::string_view text : {kPacked, kPaged}) {
    const Plan plan = plan_of(text);
    EXPECT_EQ(finding(plan), "verified");
    for (const Task& task : plan.tasks) {
      if (task.kind != TaskKind::Compute) continue;
      for (const char* buffer : {"seg", "pages", "len"}) {
        EXPECT_EQ(reads(plan, task, buffer), find_buffer(plan.program, buffer) != nullptr);
      }
    }
  }
}

TEST(DataMasks, not_read_are_missing_operands) {
  for (const std::string_view text : {kPacked, kPaged}) {
    const Plan whole = plan_of(text);
    for (const char* buffer : {"seg", "pages", "len"}) {
      if (find_buffer(whole.program, buffer) == nullptr) continue;
      Plan plan = whole;
      const auto task = std::ranges::find_if(plan.tasks, [&](const Task& each) {
        return each.kind == TaskKind::Compute && reads(plan, each, buffer);
      });
      std::erase_if(task->reads, [&](const Ref& ref) {
        return plan.allocs[ref.alloc.index()].buffer == buffer;
      });
      EXPECT_TRUE(finding(plan).starts_with("error[V50")) << buffer << ": " << finding(plan);
    }
  }
}

TEST(DataMasks, leave_what_other_masks_hide_uncomputed) {
  const Plan plan = plan_of(kPacked);
  std::int64_t computed = 0;
  for (const Task& task : plan.tasks) computed += task.kind == TaskKind::Compute ? 1 : 0;
  EXPECT_EQ(computed, 6) << "of four ranks two see one of the two blocks of keys";
}

TEST(DataMasks, fit_reduced_cases) {
  for (const std::string_view text : {kPacked, kPaged}) {
    const Plan plan = plan_of(text);
    const auto cases = reduced_cases(plan.program, plan.mesh, plan.form);
    ASSERT_TRUE(cases.ok()) << render(cases.error());
    for (const ReducedCase& small : *cases) {
      const auto lowered = lower(small.program, small.mesh, small.form);
      ASSERT_TRUE(lowered.ok()) << render(lowered.error());
      EXPECT_EQ(finding(*lowered), "verified");
    }
  }
}

}  // namespace
}  // namespace harpe::test
