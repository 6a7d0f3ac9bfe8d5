#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/launch/pass_run.h"

namespace harpe::launch::passing {
namespace store_at_peers_test {

const std::vector<void (*)(Draft&)> kPasses = {join_panels, store_at_peers};
const AllocId kSums(3);       // on rank 0, in f32
const AllocId kInboxOf1(10);  // for the sums that rank 0 sends
const AllocId kInboxOf2(16);

void expect_apart(const PassRun& it, std::int64_t copy, const std::string& why) {
  EXPECT_EQ(it.decided(copy), why);
  EXPECT_EQ(it.launch_of(3), it.launch_before(3));
  EXPECT_EQ(it.launch_of(copy), it.launch_before(copy));
}

TEST(StoreAtPeers, stores_sums_where_copies_would_take_them) {
  PassRun it(push_sums());
  it.run(kPasses);
  EXPECT_EQ(it.decided(13), "applied");
  EXPECT_EQ(it.decided(17), "applied");
  const Launch& launch = it.launch_of(3);
  EXPECT_EQ(launch.does, ids({3, 6, 9, 13, 17}));
  EXPECT_TRUE(launch.raises.empty()) << "signals are raised panel by panel";
  ASSERT_EQ(launch.kernels.size(), 2U);
  const Kernel& leaving = launch.kernels[0];
  ASSERT_EQ(leaving.panels.size(), 2U);
  const Kernel& before = it.launch_before(3).kernels.front();
  const AllocId inboxes[] = {kInboxOf1, kInboxOf2};
  const std::int64_t copies[] = {13, 17};
  for (std::size_t i = 0; i < 2; ++i) {
    const Panel& panel = leaving.panels[i];
    EXPECT_EQ(panel.stores.front().alloc, inboxes[i]);
    EXPECT_EQ(panel.stores.front().span, before.panels[i + 1].stores.front().span);
    EXPECT_EQ(panel.dtype, DType::BF16) << "rounded once, as by the copy";
    ASSERT_TRUE(panel.fused_store.has_value());
    const Raise& raise = leaving.fused_stores[static_cast<std::size_t>(*panel.fused_store)];
    EXPECT_EQ(raise.signal, it.signal_from(copies[i], static_cast<std::int64_t>(i) + 1));
    const auto met = static_cast<std::size_t>(panel.meets.front());
    EXPECT_EQ(leaving.arrivals[met], before.arrivals[i + 1]);
  }
  const Kernel& staying = launch.kernels[1];
  ASSERT_EQ(staying.panels.size(), 1U);
  EXPECT_EQ(staying.panels[0].stores, before.panels[0].stores);
  EXPECT_EQ(staying.panels[0].dtype, DType::F32);
  EXPECT_EQ(staying.arrivals, std::vector{before.arrivals[0]});
}

// All copies of a one-shot all-reduce take the same sums: one panel per copy stores them.
TEST(StoreAtPeers, stores_sums_wherever_copies_of_them_would) {
  PassRun it(one_shot());
  it.run(kPasses);
  const std::int64_t copies[] = {7, 11, 12};
  for (const std::int64_t copy : copies) EXPECT_EQ(it.decided(copy), "applied");
  const Launch& launch = it.launch_of(3);
  EXPECT_EQ(launch.does, ids({3, 7, 11, 12}));
  ASSERT_EQ(launch.kernels.size(), 1U) << "nothing stays";
  const Kernel& kernel = launch.kernels.front();
  EXPECT_EQ(kernel.arrivals.size(), 1U) << "multiplied once";
  ASSERT_EQ(kernel.panels.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const Panel& panel = kernel.panels[i];
    const Ref& to = it.plan.tasks[static_cast<std::size_t>(copies[i])].writes.front();
    EXPECT_EQ(panel.stores.front().alloc, to.alloc);
    EXPECT_EQ(panel.meets, std::vector{0});
    EXPECT_EQ(panel.dtype, DType::BF16);
    EXPECT_EQ(panel.fused_store.has_value(), i < 2) << "nobody waits for what stays here";
  }
  EXPECT_EQ(kernel.fused_stores[0].signal, it.signal_from(7, 1));
  EXPECT_EQ(kernel.fused_stores[1].signal, it.signal_from(11, 2));
}

TEST(StoreAtPeers, leaves_all_copies_apart_that_share_with_one_that_must_stay) {
  PassRun it(one_shot());
  it.add_wait(12, 4);  // a GEMM of rank 1
  it.run(kPasses);
  EXPECT_EQ(it.decided(12), refusal(Reason::WaitsForMore, 12));
  for (const std::int64_t copy : {3, 7, 11, 12}) {
    EXPECT_EQ(it.launch_of(copy), it.launch_before(copy));
  }
}

TEST(StoreAtPeers, begins_with_panels_behind_the_last_that_stays) {
  Plan plan = push_sums();
  const QueueId queue = plan.tasks[3].queue;
  std::swap(plan.tasks[3], plan.tasks[6]);  // sums of ranks 1, 0 and 2
  ASSERT_EQ(plan.tasks[3].queue, queue);
  PassRun it(plan);
  it.run(kPasses);
  const Kernel& leaving = it.launch_of(3).kernels[0];
  ASSERT_EQ(leaving.panels.size(), 2U);
  EXPECT_EQ(leaving.panels[0].stores[0].alloc, kInboxOf2);
  EXPECT_EQ(leaving.panels[1].stores[0].alloc, kInboxOf1);
}

TEST(StoreAtPeers, moves_waits_for_beginnings_before_the_launch) {
  PassRun it(push_sums());
  it.add_wait(13, 1);  // rank 1 has entered
  it.run(kPasses);
  EXPECT_EQ(it.decided(13), "applied");
  EXPECT_EQ(it.launch_of(3).awaits, it.launch_before(13).awaits);
  EXPECT_EQ(it.launch_of(3).awaits.size(), 1U);
}

TEST(StoreAtPeers, raises_nothing_where_nothing_waits_for_the_copy) {
  PassRun it(push_sums());
  it.wiring.tasks[13].raises.clear();
  it.run(kPasses);
  const Kernel& leaving = it.launch_of(13).kernels[0];
  EXPECT_EQ(leaving.fused_stores.size(), 1U);
  EXPECT_FALSE(leaving.panels[0].fused_store.has_value());
  EXPECT_EQ(leaving.panels[1].fused_store, 0);
}

TEST(StoreAtPeers, leaves_copies_apart_that_wait_for_more_than_beginnings) {
  PassRun waiting(push_sums());
  waiting.add_wait(13, 4);  // a GEMM of rank 1
  waiting.run(kPasses);
  expect_apart(waiting, 13, refusal(Reason::WaitsForMore, 13));

  PassRun behind(push_sums());
  behind.wiring.tasks[13].after = ids({21});
  behind.run(kPasses);
  expect_apart(behind, 13, refusal(Reason::WaitsForMore, 13));

  PassRun twice(push_sums());
  twice.wiring.tasks[13].raises.push_back(twice.wiring.tasks[13].raises.front());
  twice.run(kPasses);
  expect_apart(twice, 13, refusal(Reason::WaitsForMore, 13));

  PassRun posted(push_sums());
  posted.wiring.tasks[13].raises.front().is_posted = true;
  posted.run(kPasses);
  expect_apart(posted, 13, refusal(Reason::WaitsForMore, 13));
}

TEST(StoreAtPeers, takes_the_copies_before_the_first_that_must_stay_apart) {
  PassRun it(push_sums());
  it.add_wait(17, 4);
  it.run(kPasses);
  EXPECT_EQ(it.launch_of(3).does, ids({3, 6, 9, 13}));
  EXPECT_EQ(it.decided(17), refusal(Reason::WaitsForMore, 17));
  EXPECT_EQ(it.launch_of(3).kernels[1].panels.size(), 2U) << "one more stays";
}

TEST(StoreAtPeers, leaves_copies_apart_that_others_read_too) {
  Plan plan = push_sums();
  plan.tasks[18].reads.push_back(plan.tasks[13].reads.front());
  PassRun it(plan);
  it.run(kPasses);
  expect_apart(it, 13, refusal(Reason::OtherReaders, 13));
}

TEST(StoreAtPeers, leaves_copies_apart_that_move_more_than_the_panels) {
  // The kernel makes rank 1's sum elsewhere, and the copy also moves rank 0's sum.
  Abilities can;
  can.edit = [](TaskId task, Kernel& kernel) {
    if (task == TaskId(6)) kernel.panels.front().stores.front().alloc = AllocId(9);
  };
  PassRun it(push_sums(), can);
  it.run(kPasses);
  expect_apart(it, 13, refusal(Reason::NotWhole, 13));
}

TEST(StoreAtPeers, leaves_copies_apart_that_move_corners_of_panels) {
  Abilities can;
  can.edit = [](TaskId task, Kernel& kernel) {
    if (task != TaskId(6)) return;
    for (Interval& along : kernel.panels.front().stores.front().span) along.end += 1;
  };
  PassRun it(push_sums(), can);
  it.run(kPasses);
  expect_apart(it, 13, refusal(Reason::NotWhole, 13));
}

TEST(StoreAtPeers, leaves_copies_apart_that_store_another_type) {
  Plan plan = push_sums();
  plan.allocs[kInboxOf1.index()].dtype = DType::F32;
  PassRun it(plan);
  it.run(kPasses);
  expect_apart(it, 13, refusal(Reason::OtherType, 13));
}

TEST(StoreAtPeers, leaves_kernels_alone_that_add_to_what_is_there) {
  Plan plan = push_sums();
  for (const std::size_t task : {3U, 6U, 9U}) plan.tasks[task].writes.front().mode = WriteMode::Add;
  PassRun it(plan);
  it.run(kPasses);
  ASSERT_EQ(it.launch_before(3).does, ids({3, 6, 9}));
  expect_apart(it, 13, refusal(Reason::AddsUp, 13));
}

TEST(StoreAtPeers, leaves_copies_apart_where_no_kernel_stores_so) {
  for (const DType refused : {DType::BF16, DType::F32}) {  // the leaving panel, the staying one
    Abilities can;
    can.can = [=](const Launch& launch, const Kernel& kernel) {
      return launch.does.size() < 4 || kernel.panels.front().dtype != refused;
    };
    PassRun it(push_sums(), can);
    it.run(kPasses);
    EXPECT_EQ(it.decided(3), refusal(Reason::NoKernel, 2, 2));
    EXPECT_EQ(it.launch_of(3), it.launch_before(3));
    EXPECT_EQ(it.launch_of(13), it.launch_before(13));
  }
}

TEST(StoreAtPeers, has_no_rule_for_copies_of_a_copy_engine) {
  Plan plan = push_sums();
  plan.tasks[13].via = Via::Ce;
  PassRun it(plan);
  it.run(kPasses);
  expect_apart(it, 13, "");
}

}  // namespace store_at_peers_test
}  // namespace harpe::launch::passing
