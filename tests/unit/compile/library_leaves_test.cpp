#include "compile/library_leaves.h"

#include <gtest/gtest.h>

#include "tests/support/plans.h"

namespace harpe {
namespace {

using Names = std::vector<std::string>;

Names kernels_of(const std::string& op, const std::string& schedule,
                 const std::string& dtype = "bf16") {
  const Names sizes =
      op == "attention" ? Names{"seq=64", "heads=4", "head_dim=16"} : Names{"m=64", "n=64", "k=64"};
  Names parameters = sizes;
  parameters.push_back("dtype=" + dtype);
  const auto leaves = use_library_leaves(make_plan(op, parameters, "x=4", schedule));
  return leaves ? leaves->kernels : Names{};
}

TEST(LibraryLeaves, are_whole_products_and_attention_at_once) {
  EXPECT_EQ(kernels_of("attention", "ulysses"), Names{"cudnn_fa_fwd"});
  EXPECT_EQ(kernels_of("attention", "allgather"), Names{"cudnn_fa_fwd"});
  EXPECT_EQ(kernels_of("ag_gemm", "bulk"), Names{"cublaslt_gemm"});
  EXPECT_EQ(kernels_of("ag_gemm", "ring", "f16"), Names{"cublaslt_gemm"});
  EXPECT_EQ(kernels_of("gemm_rs", "bulk"), Names{"cublaslt_gemm"});
}

TEST(LibraryLeaves, are_none_that_wait_inside_go_on_or_are_wide) {
  EXPECT_EQ(kernels_of("attention", "ring"), Names{}) << "blocks go on with a state";
  EXPECT_EQ(kernels_of("ag_gemm", "push"), Names{}) << "one launch waits for its chunks";
  EXPECT_EQ(kernels_of("ag_gemm", "pull"), Names{}) << "operands are read on other ranks";
  EXPECT_EQ(kernels_of("gemm_rs", "bulk", "f32"), Names{});
}

TEST(LibraryLeaves, are_chosen_once) {
  Plan plan = make_plan("ag_gemm", {"m=64", "n=64", "k=64"}, "x=4", "bulk");
  const auto leaves = use_library_leaves(plan);
  ASSERT_TRUE(leaves);
  plan.form = leaves->form;
  EXPECT_FALSE(use_library_leaves(plan));
}

}  // namespace
}  // namespace harpe
