#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/launch/pass_run.h"

// GEMM + reduce-scatter on three ranks: task 18 adds the sums that ranks 1 and 2 store here by
// tasks 15 and 12 to rank 0's own sum.
namespace harpe::launch::passing {
namespace add_at_home_test {

const std::vector<void (*)(Draft&)> kPasses = {join_panels, store_at_peers, add_at_home};
const AllocId kHome(2);
const AllocId kFrom1(4);
const AllocId kFrom2(5);

void expect_apart(const PassRun& it, const std::string& why) {
  EXPECT_EQ(it.decided(18), why);
  EXPECT_EQ(it.launch_of(3), it.launch_before(3));
  EXPECT_EQ(it.launch_of(3).kernels.size(), 2U) << "one leaves, one stays";
  EXPECT_EQ(it.launch_of(18), it.launch_before(18));
}

TEST(AddAtHome, takes_what_others_stored_as_addends_in_the_plans_order) {
  PassRun it(push_sums());
  it.run(kPasses);
  EXPECT_EQ(it.decided(18), "applied");
  const Launch& launch = it.launch_of(3);
  EXPECT_EQ(launch.does, ids({3, 6, 9, 13, 17, 18}));
  EXPECT_TRUE(launch.awaits.empty()) << "addends are awaited inside";
  ASSERT_EQ(launch.kernels.size(), 1U);
  const Kernel& kernel = launch.kernels.front();
  ASSERT_EQ(kernel.panels.size(), 3U);
  const Kernel& staying = it.launch_before(3).kernels[1];
  const Panel& total = kernel.panels.back();
  EXPECT_EQ(total.stores.front().alloc, kHome);
  EXPECT_EQ(total.stores.front().span, staying.panels[0].stores.front().span);
  EXPECT_EQ(total.dtype, DType::BF16);
  ASSERT_EQ(total.addends.size(), 2U);
  EXPECT_EQ(total.addends[0].reads.front().alloc, kFrom1);
  EXPECT_EQ(total.addends[1].reads.front().alloc, kFrom2);
  EXPECT_EQ(total.addends[0].reads.front().span, total.stores.front().span);
  ASSERT_TRUE(it.signal_from(15, 0).has_value());
  EXPECT_EQ(total.addends[0].when, it.signal_from(15, 0));
  EXPECT_EQ(total.addends[1].when, it.signal_from(12, 0));
  ASSERT_EQ(kernel.arrivals.size(), 3U);
  EXPECT_EQ(kernel.arrivals[static_cast<std::size_t>(total.meets.front())], staying.arrivals[0]);
}

// Rank 1's own sum lies between the others in the plan, but the kernel adds it first.
TEST(AddAtHome, leaves_the_own_sum_out_of_the_addends) {
  PassRun it(push_sums());
  it.run(kPasses);
  const std::vector<Addend>& addends = it.launch_of(19).kernels.front().panels.back().addends;
  const Task& total = it.plan.tasks[19];
  ASSERT_EQ(addends.size(), 2U);
  EXPECT_EQ(addends[0].reads.front().alloc, total.reads[0].alloc);
  EXPECT_EQ(addends[1].reads.front().alloc, total.reads[2].alloc);
}

// If the own sum is also sent, a panel without a GEMM adds all addends in the order of ranks.
TEST(AddAtHome, adds_up_what_all_have_stored_here) {
  PassRun it(one_shot());
  it.run(kPasses);
  for (const std::int64_t rank : {0, 1, 2}) {
    EXPECT_EQ(it.decided(15 + rank), "applied");
    const Launch& launch = it.launch_of(15 + rank);
    ASSERT_EQ(launch.kernels.size(), 1U);
    EXPECT_TRUE(launch.awaits.empty()) << "addends are awaited inside";
    const std::vector<Panel>& panels = launch.kernels.front().panels;
    ASSERT_EQ(panels.size(), 4U);
    const Panel& total = panels.back();
    EXPECT_TRUE(total.meets.empty());
    EXPECT_FALSE(total.fused_store.has_value());
    const Task& finalise = it.plan.tasks[static_cast<std::size_t>(15 + rank)];
    EXPECT_EQ(total.stores.front().alloc, finalise.writes.front().alloc);
    ASSERT_EQ(total.addends.size(), 3U);
    for (std::size_t from = 0; from < 3; ++from) {
      EXPECT_EQ(total.addends[from].reads.front().alloc, finalise.reads[from].alloc);
      const bool is_own = static_cast<std::int64_t>(from) == rank;
      EXPECT_EQ(total.addends[from].when.has_value(), !is_own);
    }
    EXPECT_EQ(total.addends[static_cast<std::size_t>(rank)].reads, panels[2].stores);
  }
}

// Each part waits only for its own addends.
TEST(AddAtHome, adds_totals_of_parts_as_they_come) {
  PassRun it(parted_sums());
  it.run(kPasses);
  EXPECT_EQ(it.decided(14), "applied");
  EXPECT_EQ(it.decided(15), "applied");
  const Launch& launch = it.launch_of(14);
  EXPECT_EQ(&launch, &it.launch_of(15));
  ASSERT_EQ(launch.kernels.size(), 1U);
  const std::vector<Panel>& panels = launch.kernels.front().panels;
  ASSERT_EQ(panels.size(), 4U);
  for (const std::size_t part : {0U, 1U}) {
    EXPECT_TRUE(panels[part].fused_store.has_value());
    const Panel& total = panels[2 + part];
    ASSERT_EQ(total.addends.size(), 1U);
    EXPECT_EQ(total.addends.front().when, it.signal_from(10 + static_cast<std::int64_t>(part), 0));
  }
}

TEST(AddAtHome, leaves_parts_apart_where_one_waits_for_more) {
  PassRun it(parted_sums());
  it.add_wait(15, 5);  // a GEMM of rank 1
  it.run(kPasses);
  EXPECT_EQ(it.decided(15), refusal(Reason::OtherWaits, 15, 1));
  EXPECT_EQ(it.launch_of(14), it.launch_before(14));
}

TEST(AddAtHome, leaves_the_total_of_all_apart_where_no_kernel_adds_it) {
  Abilities can;
  can.can = [](const Launch&, const Kernel& kernel) { return !kernel.panels.back().meets.empty(); };
  PassRun it(one_shot(), can);
  it.run(kPasses);
  EXPECT_EQ(it.decided(15), refusal(Reason::NoKernel, 4, 1));
  EXPECT_EQ(it.launch_of(3), it.launch_before(3));
  EXPECT_EQ(it.launch_of(15), it.launch_before(15));
}

TEST(AddAtHome, leaves_the_total_apart_where_ranks_share_sms) {
  Abilities can;
  can.shares_sms = true;
  PassRun it(push_sums(), can);
  it.run(kPasses);
  expect_apart(it, refusal(Reason::SharedSms));
}

TEST(AddAtHome, leaves_a_total_apart_that_is_behind_another_queue) {
  PassRun it(push_sums());
  it.wiring.tasks[18].after = ids({0});
  it.run(kPasses);
  expect_apart(it, refusal(Reason::BehindOtherQueue, 18, 1));
}

TEST(AddAtHome, leaves_the_total_apart_where_no_one_signal_says_that_an_addend_came) {
  PassRun twice(push_sums());
  twice.add_wait(18, 15);
  twice.run(kPasses);
  expect_apart(twice, refusal(Reason::UnknownAddend, 18, 1));

  PassRun never(push_sums());
  never.wiring.tasks[18].waits.pop_back();
  never.run(kPasses);
  EXPECT_EQ(never.launch_of(18), never.launch_before(18));
  EXPECT_EQ(never.decided(18).substr(0, 22), refusal(Reason::UnknownAddend, 18).substr(0, 22));
}

TEST(AddAtHome, leaves_a_total_apart_that_waits_for_more_than_its_addends) {
  PassRun it(push_sums());
  it.add_wait(18, 4);  // a GEMM of rank 1
  it.run(kPasses);
  expect_apart(it, refusal(Reason::OtherWaits, 18, 1));
}

TEST(AddAtHome, leaves_the_total_apart_where_it_is_not_of_whole_panels) {
  Plan plan = push_sums();
  plan.tasks[18].reads.erase(plan.tasks[18].reads.begin());  // the own sum
  PassRun without(plan);
  without.run(kPasses);
  expect_apart(without, refusal(Reason::NotWhole, 18));

  plan = push_sums();  // the first addend holds other elements
  plan.tasks[18].reads[1].boxes = plan.tasks[13].reads.front().boxes;
  PassRun other(plan);
  other.run(kPasses);
  expect_apart(other, refusal(Reason::NotWhole, 18));

  plan = push_sums();  // sums of rank 0 and another rank
  plan.tasks[18].writes.front().boxes.push_back(plan.tasks[13].reads.front().boxes.front());
  PassRun more(plan);
  more.run(kPasses);
  expect_apart(more, refusal(Reason::NotWhole, 18));
}

TEST(AddAtHome, leaves_the_total_apart_where_addends_or_the_home_have_another_type) {
  const std::pair<AllocId, DType> addend(kFrom2, DType::F32);
  const std::pair<AllocId, DType> home(kHome, DType::F16);  // kernels could store f32, but not f16
  for (const auto& [alloc, dtype] : {addend, home}) {
    Plan plan = push_sums();
    plan.allocs[alloc.index()].dtype = dtype;
    PassRun it(plan);
    it.run(kPasses);
    expect_apart(it, refusal(Reason::OtherType, 18));
  }
}

TEST(AddAtHome, leaves_the_total_apart_where_no_kernel_adds) {
  Abilities can;
  can.can = [](const Launch&, const Kernel& kernel) {
    return kernel.panels.back().addends.empty();
  };
  PassRun it(push_sums(), can);
  it.run(kPasses);
  expect_apart(it, refusal(Reason::NoKernel, 3, 3));
}

TEST(AddAtHome, has_no_rule_where_nothing_is_stored_at_peers) {
  PassRun it(push_sums());
  it.run({join_panels, add_at_home});
  EXPECT_EQ(it.decided(18), "");
  EXPECT_EQ(it.launch_of(18), it.launch_before(18));
}

}  // namespace add_at_home_test
}  // namespace harpe::launch::passing
