#include <gtest/gtest.h>

#include "plan/refs.h"
#include "tests/unit/launch/pass_run.h"

// GEMM + all-reduce on two ranks: rank 0 adds up its rows in task 8 and sends the total to rank 1
// in task 11.
namespace harpe::launch::passing {
namespace store_replicas_test {

const std::vector<void (*)(Draft&)> kPasses = {join_panels, store_at_peers, add_at_home,
                                               store_replicas};
constexpr std::int64_t kTotal = 8;
constexpr std::int64_t kCopy = 11;

void expect_apart(const PassRun& it, const std::string& why) {
  EXPECT_EQ(it.decided(kCopy), why);
  EXPECT_EQ(it.launch_of(kTotal), it.launch_before(kTotal));
  EXPECT_EQ(it.launch_of(kCopy), it.launch_before(kCopy));
}

TEST(StoreReplicas, a_total_is_stored_at_all_ranks_that_need_it) {
  PassRun it(all_sums());
  it.run(kPasses);
  EXPECT_EQ(it.decided(kCopy), "applied");
  const Launch& launch = it.launch_of(kTotal);
  EXPECT_EQ(launch.does.back(), TaskId(kCopy));
  ASSERT_EQ(launch.kernels.size(), 1U);
  const Kernel& kernel = launch.kernels.front();
  ASSERT_EQ(kernel.panels.size(), 3U);
  const Panel& total = kernel.panels[1];
  const Panel& replica = kernel.panels[2];
  EXPECT_TRUE(replica.meets.empty());
  ASSERT_EQ(replica.addends.size(), 1U);
  EXPECT_EQ(replica.addends.front().reads, total.stores);
  EXPECT_FALSE(replica.addends.front().when.has_value()) << "the kernel stores it itself";
  EXPECT_EQ(replica.dtype, total.dtype);
  EXPECT_EQ(replica.stores.front().span, total.stores.front().span);
  EXPECT_EQ(replica.stores.front().alloc, it.plan.tasks[kCopy].writes.front().alloc);
  ASSERT_TRUE(replica.fused_store.has_value());
  const Raise& raise = kernel.fused_stores[static_cast<std::size_t>(*replica.fused_store)];
  EXPECT_EQ(raise.signal, it.signal_from(kCopy, 1));
  EXPECT_TRUE(launch.raises.empty()) << "the panel's stores raise it";
}

TEST(StoreReplicas, leaves_a_copy_apart_that_waits_for_more_than_beginnings) {
  PassRun it(all_sums());
  it.add_wait(kCopy, 5);  // a GEMM of rank 1
  it.run(kPasses);
  expect_apart(it, refusal(Reason::WaitsForMore, kCopy));
}

TEST(StoreReplicas, leaves_a_copy_apart_that_takes_other_elements_than_whole_panels) {
  Plan plan = all_sums();
  plan.tasks[kCopy].reads.front().boxes = plan.tasks[10].reads.front().boxes;
  PassRun it(plan);
  it.run(kPasses);
  expect_apart(it, refusal(Reason::NotWhole, kCopy));
}

TEST(StoreReplicas, leaves_a_copy_to_another_type_apart) {
  Plan plan = all_sums();
  plan.allocs[plan.tasks[kCopy].writes.front().alloc.index()].dtype = DType::F32;
  PassRun it(plan);
  it.run({join_panels, store_replicas});
  EXPECT_NE(it.decided(kCopy), "applied");
}

TEST(StoreReplicas, leaves_copies_apart_where_no_kernel_stores_twice) {
  Abilities can;
  can.can = [](const Launch&, const Kernel& kernel) { return !kernel.panels.back().meets.empty(); };
  PassRun it(all_sums(), can);
  it.run(kPasses);
  expect_apart(it, refusal(Reason::NoKernel, 3, 2));
}

}  // namespace store_replicas_test
}  // namespace harpe::launch::passing
