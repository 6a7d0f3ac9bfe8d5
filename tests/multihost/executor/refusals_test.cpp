#include <gtest/gtest.h>

#include <algorithm>

#include "tests/multihost/executor/crew.h"

namespace harpe::test {
namespace refusals_test {

const std::vector<std::string> kAttention = {"batch=1", "seq=32", "heads=4", "head_dim=8",
                                             "dtype=f32"};

DiagCode refusal_of(const Plan& plan, int processes, int hosts) {
  const auto made = make_in_every_process(
      std::vector<Plan>(static_cast<std::size_t>(processes), plan), hosts, {});
  for (const auto& one : made) EXPECT_EQ(one.error().code, made.front().error().code);
  return made.front().error().code;
}

TEST(Hosts, are_not_reached_in_place) {
  const Plan ring = plan_of({"attention", kAttention, "cp=4", "ring"});
  EXPECT_EQ(refusal_of(ring, 4, 2), DiagCode::X016);
  const Plan collective = plan_of({"attention", kAttention, "cp=4", "ulysses"});
  EXPECT_EQ(refusal_of(collective, 4, 4), DiagCode::X016);
}

TEST(Hosts, are_sent_to_under_one_policy_of_each_queue) {
  Plan plan = plan_of({"attention", kAttention, "cp=4", "ring", 4, 4}, Fence::PerDestination);
  const auto first =
      std::ranges::find_if(plan.syncs, [](const Sync& sync) { return sync.fence.has_value(); });
  const TaskId put = first->from;
  for (Sync& sync : plan.syncs) {
    if (sync.fence && sync.from == put) sync.fence = Fence::NicOrdered;
  }
  EXPECT_EQ(refusal_of(plan, 4, 4), DiagCode::X017);
}

TEST(Hosts, have_equally_many_ranks) {
  const Plan plan = plan_of({"attention", kAttention, "cp=4", "ring"});
  EXPECT_EQ(refusal_of(plan, 3, 1), DiagCode::N016);
}

TEST(Hosts, run_one_plan) {
  const Plan plan = plan_of({"attention", kAttention, "cp=2", "ring"});
  const Plan other = plan_of({"attention", kAttention, "cp=2", "allgather"});
  const auto made = make_in_every_process({plan, other}, 1, {});
  for (const auto& one : made) {
    ASSERT_FALSE(one.ok());
    EXPECT_EQ(render_message(one.error()), "rank 1 runs another plan than rank 0");
  }
}

// Two hosts need a network provider, and libfabric does not know this one.
TEST(Hosts, need_a_provider_that_is_there) {
  const Plan plan = plan_of({"attention", kAttention, "cp=2", "ring", 2, 2});
  const auto made = make_in_every_process(
      {plan, plan}, 2, [](int, CpuOptions& options) { options.provider = "pigeons"; });
  for (const auto& one : made) {
    ASSERT_FALSE(one.ok());
    EXPECT_EQ(one.error().code, DiagCode::N002);
  }
}

}  // namespace refusals_test
}  // namespace harpe::test
