#include "offers/offers.h"

#include <gmock/gmock.h>

#include <set>

namespace harpe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Offers, name_each_kernel_once) {
  std::set<std::string> names;
  for (const std::string& name : offered_kernels()) {
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(find_offer(name)->name, name);
    EXPECT_NE(name, "any") << "which leaves the choice to the executor";
  }
  EXPECT_EQ(find_offer("gemm_sm80"), nullptr);
}

TEST(Offers, are_of_one_executor) {
  EXPECT_NE(cpu_offers().find("cpu_gemm"), nullptr);
  EXPECT_EQ(cpu_offers().find("gemm_sm90"), nullptr);
  EXPECT_NE(gpu_offers().find("gemm_sm90"), nullptr);
  EXPECT_EQ(gpu_offers().find("cpu_gemm"), nullptr);
}

TEST(Offers, are_listed_by_leaf) {
  EXPECT_THAT(offered_kernels("attn_fwd"),
              ElementsAre("cpu_attention", "fa_fwd_sm90", "cudnn_fa_fwd"));
  EXPECT_THAT(offered_kernels("silu"), IsEmpty());
  EXPECT_THAT(offered_kernels("of_a_program"), IsEmpty());
}

TEST(Offers, say_what_a_leaf_can_be_asked_for) {
  EXPECT_TRUE(is_offered("matmul", &KernelOffer::remote_operands));
  EXPECT_TRUE(is_offered("attn_fwd", &KernelOffer::chunks));
  EXPECT_FALSE(is_offered("attn_fwd", &KernelOffer::remote_operands));
  EXPECT_FALSE(is_offered("attn_bwd", &KernelOffer::chunks));
  EXPECT_FALSE(is_offered("of_a_program", &KernelOffer::chunks));
}

}  // namespace
}  // namespace harpe
