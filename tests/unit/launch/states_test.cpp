#include <gtest/gtest.h>

#include "tests/unit/launch/pass_run.h"

// Attention of few queries on two ranks. Each rank has half of the keys and owns half of the heads,
// so ranks send states of heads and combine them.
namespace harpe::launch::passing {
namespace states_test {

const std::vector<void (*)(Draft&)> kStore = {store_at_peers};
const std::vector<void (*)(Draft&)> kAdd = {store_at_peers, add_at_home};
constexpr std::int64_t kOwn = 2;    // on rank 0: makes states of all heads
constexpr std::int64_t kCopy = 5;   // sends rank 1's heads
constexpr std::int64_t kTotal = 6;  // combines its heads with those from rank 1
const Interval kHeads0 = {.begin = 0, .end = 1};
const Interval kHeads1 = {.begin = 1, .end = 2};

Interval heads_of(const Place& place) { return place.span[1]; }

TEST(States, are_cut_where_a_copy_takes_a_part) {
  PassRun it(states());
  it.run(kStore);
  EXPECT_EQ(it.decided(kCopy), "applied");
  const Launch& launch = it.launch_of(kOwn);
  EXPECT_EQ(launch.does, ids({kOwn, kCopy}));
  ASSERT_EQ(launch.kernels.size(), 1U) << "what was one panel is one kernel's";
  const Kernel& kernel = launch.kernels.front();
  EXPECT_EQ(kernel.arrivals, it.launch_before(kOwn).kernels.front().arrivals);
  ASSERT_EQ(kernel.panels.size(), 2U);
  const Panel& sent = kernel.panels[0];
  const Panel& kept = kernel.panels[1];
  for (const Place& place : sent.stores) {
    EXPECT_EQ(heads_of(place), kHeads1);
    EXPECT_EQ(it.plan.allocs[place.alloc.index()].rank, RankId(1));
  }
  EXPECT_EQ(heads_of(sent.reads.front()), kHeads1) << "of queries too";
  EXPECT_EQ(sent.dtype, DType::F32) << "a state is sent as it is";
  EXPECT_EQ(sent.fused_store, 0);
  ASSERT_EQ(kernel.fused_stores.size(), 1U);
  EXPECT_EQ(kernel.fused_stores.front().signal, it.signal_from(kCopy, 1));
  ASSERT_EQ(kept.stores.size(), 2U);
  for (const Place& place : kept.stores) EXPECT_EQ(heads_of(place), kHeads0);
  EXPECT_FALSE(kept.fused_store.has_value());
}

TEST(States, are_combined_with_what_others_have_sent) {
  PassRun it(states());
  it.run(kAdd);
  EXPECT_EQ(it.decided(kTotal), "applied");
  const Launch& launch = it.launch_of(kOwn);
  EXPECT_EQ(launch.does, ids({kOwn, kCopy, kTotal}));
  EXPECT_TRUE(launch.awaits.empty()) << "addends are awaited inside";
  ASSERT_EQ(launch.kernels.size(), 1U);
  const Kernel& before = it.launch_before(kOwn).kernels.front();
  const Kernel& kernel = launch.kernels.front();
  ASSERT_EQ(kernel.panels.size(), 2U);
  EXPECT_EQ(kernel.panels[0], before.panels[0]) << "what is sent stays as it is";
  const Panel& total = kernel.panels[1];
  EXPECT_EQ(total.meets, before.panels[1].meets);
  EXPECT_EQ(total.dtype, DType::BF16);
  const Task& task = it.plan.tasks[kTotal];
  ASSERT_EQ(total.stores.size(), 2U);
  ASSERT_EQ(total.addends.size(), 1U);
  ASSERT_EQ(total.addends[0].reads.size(), 2U) << "o and lse";
  for (std::size_t part = 0; part < 2; ++part) {
    EXPECT_EQ(total.stores[part].alloc, task.writes[part].alloc);
    EXPECT_EQ(total.addends[0].reads[part].alloc, task.reads[2 + part].alloc);
    EXPECT_EQ(total.addends[0].reads[part].span, total.stores[part].span);
  }
  EXPECT_EQ(total.addends[0].when, it.signal_from(4, 0));
}

TEST(States, stay_one_kernels_where_the_total_stays_apart) {
  Abilities can;
  can.shares_sms = true;
  PassRun it(states(), can);
  it.run(kAdd);
  EXPECT_EQ(it.decided(kTotal), refusal(Reason::SharedSms));
  EXPECT_EQ(it.launch_of(kOwn), it.launch_before(kOwn));
  EXPECT_EQ(it.launch_of(kOwn).kernels.size(), 1U);
}

TEST(States, are_sent_by_copies_where_no_kernel_does) {
  Abilities can;
  can.can = [](const Launch&, const Kernel& kernel) { return kernel.fused_stores.empty(); };
  PassRun it(states(), can);
  it.run(kStore);
  EXPECT_EQ(it.decided(kOwn), refusal(Reason::NoKernel, 2, 1));
  EXPECT_EQ(it.launch_of(kOwn), it.launch_before(kOwn));
}

TEST(States, are_combined_apart_where_the_inbox_has_another_type) {
  Plan plan = states();
  plan.allocs[plan.tasks[kTotal].reads[2].alloc.index()].dtype = DType::BF16;
  PassRun it(plan);
  it.run(kAdd);
  EXPECT_EQ(it.decided(kTotal), refusal(Reason::OtherType, kTotal));
  EXPECT_EQ(it.launch_of(kOwn), it.launch_before(kOwn));
}

}  // namespace states_test
}  // namespace harpe::launch::passing
