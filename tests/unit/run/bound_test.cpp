#include "run/bound.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/plans.h"

namespace harpe {
namespace {

ErrorBound gemm_rs(const std::string& dtype, const std::string& schedule) {
  return bound_of(
      make_plan("gemm_rs", {"m=64", "n=64", "k=400", "dtype=" + dtype}, "x=4", schedule), "c", {});
}

TEST(Bound, grows_with_the_square_root_of_the_contraction) {
  EXPECT_DOUBLE_EQ(gemm_rs("f32", "bulk").leaf, 20 * unit_roundoff(DType::F32));
  EXPECT_DOUBLE_EQ(gemm_rs("bf16", "bulk").leaf, 20 * unit_roundoff(DType::F32));
  EXPECT_DOUBLE_EQ(gemm_rs("f64", "bulk").leaf, 20 * unit_roundoff(DType::F64));
}

TEST(Bound, counts_one_fold_per_block_of_the_contraction) {
  EXPECT_DOUBLE_EQ(gemm_rs("f32", "bulk").states, 2 * unit_roundoff(DType::F32));
}

TEST(Bound, counts_every_hop_of_a_travelling_sum_and_one_of_a_direct_one) {
  EXPECT_DOUBLE_EQ(gemm_rs("bf16", "ring").wire, 3 * unit_roundoff(DType::BF16));
  EXPECT_DOUBLE_EQ(gemm_rs("bf16", "bulk").wire, unit_roundoff(DType::BF16));
  EXPECT_DOUBLE_EQ(gemm_rs("bf16", "bulk").output, unit_roundoff(DType::BF16));
}

TEST(Bound, is_held_four_times) {
  const ErrorBound bound = gemm_rs("bf16", "ring");
  EXPECT_DOUBLE_EQ(bound.limit(), 4 * (bound.leaf + bound.states + bound.wire + bound.output));
}

TEST(Bound, of_attention_scales_with_scores_and_keys) {
  const Plan plan = make_plan(
      "attention", {"seq=64", "kv_seq=256", "heads=2", "head_dim=16", "dtype=f32"}, "cp=4", "ring");
  const double u = unit_roundoff(DType::F32);
  EXPECT_DOUBLE_EQ(bound_of(plan, "o", {}).leaf, (4 + 16) * u);
  EXPECT_DOUBLE_EQ(bound_of(plan, "o", {.other_scores = {.score = 10}}).leaf, (40 + 16) * u);
  EXPECT_DOUBLE_EQ(bound_of(plan, "o", {.other_scores = {.logsum = 6}}).states, 2 * 6 * u);
  EXPECT_DOUBLE_EQ(bound_of(plan, "lse", {}).output, u);
}

TEST(Bound, of_f64_attention_knows_that_its_states_are_f64) {
  const Plan plan = make_plan("attention", {"seq=64", "heads=2", "dtype=f64"}, "cp=2", "ring");
  EXPECT_LT(bound_of(plan, "o", {}).limit(), 1e-13);
  EXPECT_GT(bound_of(plan, "lse", {}).limit(), 1e-8) << "the logsumexp itself is f32";
}

Plan backward(const std::string& dtype, const std::string& schedule) {
  return make_plan(
      "attention_bwd",
      {"seq=64", "kv_seq=256", "heads=2", "head_dim=16", "v_head_dim=9", "dtype=" + dtype}, "cp=4",
      schedule);
}

TEST(Bound, of_gradients_counts_the_exponents_the_products_and_the_sum) {
  const Plan plan = backward("f32", "ring");
  const double u = unit_roundoff(DType::F32);
  const Magnitudes magnitudes{.scores = {{"dq", {.score = 10, .logsum = 6}}}};
  EXPECT_DOUBLE_EQ(bound_of(plan, "dq", magnitudes).leaf, (4 * 10 + 6 + 3 + 16) * u);
  EXPECT_DOUBLE_EQ(bound_of(plan, "dk", magnitudes).leaf, (4 * 10 + 6 + 3 + 8) * u);
  EXPECT_DOUBLE_EQ(bound_of(plan, "dk", magnitudes).states, 2 * u);
  EXPECT_DOUBLE_EQ(bound_of(plan, "dk", magnitudes).operands, (3 + 1) * u) << "of delta";
}

TEST(Bound, of_gradients_knows_in_which_type_they_travel) {
  EXPECT_DOUBLE_EQ(bound_of(backward("bf16", "ring"), "dk", {}).wire, 4 * unit_roundoff(DType::F32))
      << "three hops and one home";
  EXPECT_DOUBLE_EQ(bound_of(backward("bf16", "allgather"), "dk", {}).wire,
                   unit_roundoff(DType::BF16));
  EXPECT_DOUBLE_EQ(bound_of(backward("bf16", "ring"), "dq", {}).wire, 0);
}

TEST(Bound, near_zero_counts_what_every_rounding_loses) {
  const Plan plan = make_plan("gemm_rs", {"m=64", "n=64", "k=400", "dtype=f16"}, "x=4", "bulk");
  const ErrorBound bound = bound_of(plan, "c", {});
  const double lost = 0x1p-25;  // half of the smallest f16
  EXPECT_NEAR(bound.underflow / lost, 1 + 2, 1e-9) << "the output, and the parts of four ranks";
  EXPECT_DOUBLE_EQ(bound.floor(), bound.underflow / bound.expected());
  EXPECT_DOUBLE_EQ(bound.limit(), gemm_rs("f16", "bulk").limit()) << "what is not small stays";
}

TEST(Bound, near_zero_follows_temporaries_through_what_they_are_multiplied_with) {
  const Plan plan =
      make_plan("moe", {"tokens=8", "hidden=4", "experts=2", "topk=1", "inter=9", "dtype=f16"},
                "x=2", "push");
  Magnitudes magnitudes;
  const double before = bound_of(plan, "y", magnitudes).underflow;
  magnitudes.largest["w2"] = 100;
  EXPECT_GT(bound_of(plan, "y", magnitudes).underflow, 50 * before)
      << "what the activations lose is multiplied with w2";
}

TEST(Bound, of_bf16_products_lets_operands_below_the_normal_numbers_count_as_zero) {
  const Plan plan = make_plan("gemm", {"m=8", "n=8", "k=16", "dtype=bf16"}, "x=2", "bulk");
  EXPECT_GE(bound_of(plan, "c", {}).underflow, 2 * 4 * 0x1p-126);
  EXPECT_LT(bound_of(plan, "c", {}).underflow, 2 * 5 * 0x1p-126);
}

}  // namespace
}  // namespace harpe
