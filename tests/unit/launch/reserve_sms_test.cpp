#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/proxy_plan.h"
#include "tests/unit/launch/pass_run.h"

// All-gather + GEMM on two ranks. Rank 1's kernel, from task 19 on, waits inside while its copy
// engine sends by tasks 10 to 13 what rank 0's kernel waits for.
namespace harpe::launch::passing {
namespace reserve_sms_test {

const std::vector<void (*)(Draft&)> kPasses = {join_panels, read_in_place, reserve_sms};
constexpr std::int64_t kSends[] = {10, 11, 12, 13};

TEST(ReserveSms, leaves_no_sm_free_for_what_the_copy_engine_does_alone) {
  PassRun it(harpe::test::push_plan());
  it.run(kPasses);
  EXPECT_EQ(it.launch_of(19).reserved_sms, 0);
  EXPECT_TRUE(it.launch_of(19).begun.empty());
  for (const std::int64_t send : kSends) EXPECT_TRUE(it.launch_of(send).raised_by_engine);
  EXPECT_FALSE(it.launch_of(19).raised_by_engine);
}

TEST(ReserveSms, begins_behind_the_waits_of_what_it_would_keep_from_beginning) {
  PassRun it(harpe::test::push_plan());
  it.add_wait(10, 0);  // rank 0 has entered
  it.run(kPasses);
  EXPECT_EQ(it.decided(19), "applied");
  EXPECT_EQ(it.launch_of(19).reserved_sms, 0);
  ASSERT_EQ(it.launch_of(19).begun.size(), 1U);
  const LaunchPlan launches = it.draft->plan_so_far();
  EXPECT_EQ(launches.launches[it.launch_of(19).begun.front().index()].does, ids({10}));
}

TEST(ReserveSms, leaves_sms_to_kernels_that_make_what_is_awaited) {
  // Copies within the rank, made by kernels, come first in the queue.
  PassRun copied(harpe::test::push_plan());
  copied.run({join_panels, reserve_sms});
  EXPECT_EQ(copied.decided(19), "applied");
  EXPECT_EQ(copied.launch_of(19).reserved_sms, kSmsForKernels);

  Abilities can;
  can.edit = [](TaskId task, Kernel& kernel) {
    if (std::ranges::find(kSends, task.value) != std::end(kSends)) kernel.name = "move";
  };
  PassRun sent(harpe::test::push_plan(), can);
  sent.run(kPasses);
  EXPECT_EQ(sent.launch_of(19).reserved_sms, kSmsForKernels);
  EXPECT_EQ(sent.launch_of(18).reserved_sms, 0) << "what rank 0 sends is the copy engine's";
  EXPECT_FALSE(sent.launch_of(10).raised_by_engine);
}

TEST(ReserveSms, leaves_sms_to_kernels_that_raise_signals) {
  PassRun it(harpe::test::push_plan());
  it.wiring.tasks[10].raises.front().added = 4;  // a counter, which copy engines cannot add to
  it.run(kPasses);
  EXPECT_EQ(it.launch_of(19).reserved_sms, kSmsForSignals);
  EXPECT_FALSE(it.launch_of(10).raised_by_engine);
  EXPECT_TRUE(it.launch_of(14).raised_by_engine);
}

TEST(ReserveSms, lets_kernels_raise_flags_where_ranks_share_sms) {
  Abilities can;
  can.shares_sms = true;
  PassRun it(harpe::test::push_plan(), can);
  it.run({join_panels, wait_before, reserve_sms});
  EXPECT_EQ(it.launch_of(19).reserved_sms, 0) << "it waits before it begins";
  for (const std::int64_t send : kSends) EXPECT_FALSE(it.launch_of(send).raised_by_engine);
}

TEST(ReserveSms, leaves_sms_to_what_is_launched_later) {
  PassRun it(harpe::test::push_plan());
  // Moves the sends right before the Exit.
  std::ranges::stable_partition(it.wiring.sequence[1], [&](TaskId task) {
    return std::ranges::find(kSends, task.value) == std::end(kSends) &&
           it.plan.tasks[task.index()].kind != TaskKind::Exit;
  });
  it.run(kPasses);
  EXPECT_GT(it.draft->position[10], it.draft->position[19]);
  EXPECT_EQ(it.launch_of(19).reserved_sms, kSmsForSignals);
}

TEST(ReserveSms, leaves_sms_to_what_waits_for_more_than_beginnings) {
  PassRun it(harpe::test::push_plan());
  it.add_wait(10, 34);
  it.run(kPasses);
  EXPECT_EQ(it.launch_of(19).reserved_sms, kSmsForSignals);
  EXPECT_TRUE(it.launch_of(19).begun.empty());
}

// Rank 1's own copies serve another reader: the kernel no longer waits for them.
TEST(ReserveSms, leaves_no_sm_free_for_what_the_kernel_reads_in_place) {
  Plan plan = harpe::test::push_plan();
  plan.tasks[35].reads.push_back(plan.tasks[19].reads.front());
  PassRun it(plan);
  it.run(kPasses);
  EXPECT_FALSE(it.launch_of(6).is_skipped);
  EXPECT_EQ(it.launch_of(19).reserved_sms, kSmsForSignals) << "sends are behind those copies";
}

TEST(ReserveSms, leaves_sms_to_landings_on_the_rank) {
  PassRun it(harpe::test::by_proxy(harpe::test::push_plan(), Fence::NicOrdered));
  it.run(kPasses);
  EXPECT_EQ(it.launch_of(18).reserved_sms, kSmsForKernels);
  EXPECT_EQ(it.launch_of(19).reserved_sms, kSmsForKernels);
}

TEST(ReserveSms, has_no_rule_for_kernels_that_do_not_wait_inside) {
  PassRun it(harpe::test::push_plan());
  it.run({reserve_sms});
  EXPECT_EQ(it.decided(19), "");
  EXPECT_EQ(it.launch_of(19).reserved_sms, 0);
  EXPECT_TRUE(it.launch_of(10).raised_by_engine) << "flags are raised so all the same";
}

TEST(ReserveSms, lets_the_copy_engine_raise_flags_of_other_ranks_alone) {
  const auto is_by_engine = [](const std::function<void(PassRun&)>& change) {
    PassRun it(harpe::test::push_plan());
    change(it);
    it.run(kPasses);
    return it.launch_of(10).raised_by_engine;
  };
  EXPECT_TRUE(is_by_engine([](PassRun&) {}));
  EXPECT_FALSE(is_by_engine([](PassRun& it) { it.wiring.tasks[10].raises.front().added = 4; }));
  EXPECT_FALSE(
      is_by_engine([](PassRun& it) { it.wiring.tasks[10].raises.front().is_posted = true; }));
  EXPECT_FALSE(is_by_engine(
      [](PassRun& it) { it.wiring.tasks[10].raises.push_back({.rank = RankId(1), .signal = 0}); }));
  EXPECT_FALSE(is_by_engine([](PassRun& it) { it.wiring.tasks[10].raises.clear(); }));
  EXPECT_FALSE(is_by_engine([](PassRun& it) {
    it.wiring.tasks[10].arrivals.push_back(it.wiring.tasks[10].raises.front());
  }));
}

}  // namespace reserve_sms_test
}  // namespace harpe::launch::passing
