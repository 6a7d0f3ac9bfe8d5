#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/proxy_plan.h"
#include "tests/unit/launch/pass_run.h"

// All-gather + GEMM on two ranks, without fused kernels of the schedule. On rank 0, task 18 and the
// next of its queue, 20, wait for nothing; 22 waits for a copy.
namespace harpe::launch::passing {
namespace batch_rows_test {

Plan two_tasks() {
  Plan plan = harpe::test::push_plan();
  for (Task& task : plan.tasks) task.kernel = -1;
  std::erase_if(plan.syncs, [](const Sync& sync) { return sync.to == TaskId(20); });
  return plan;
}

Abilities counting(bool joins) {
  Abilities can;
  can.counts_rows = [](TaskId) { return true; };
  can.can = [=](const Launch&, const Kernel& kernel) { return joins || kernel.panels.size() < 2; };
  return can;
}

TEST(BatchRows, make_one_kernel_of_tasks_side_by_side) {
  PassRun it(two_tasks(), counting(true));
  it.run({batch_rows});
  EXPECT_EQ(it.launch_of(18).does, ids({18, 20}));
  ASSERT_EQ(it.launch_of(18).kernels.size(), 1U);
  const Kernel& kernel = it.launch_of(18).kernels.front();
  ASSERT_EQ(kernel.panels.size(), 2U);
  EXPECT_EQ(kernel.panels[0].stores, it.launch_before(18).kernels[0].panels[0].stores);
  EXPECT_EQ(kernel.panels[1].stores, it.launch_before(20).kernels[0].panels[0].stores);
  EXPECT_EQ(kernel.arrivals[1].reads, it.launch_before(20).kernels[0].arrivals[0].reads);
}

TEST(BatchRows, leave_it_to_the_target_where_panels_cannot_be_joined) {
  PassRun it(two_tasks(), counting(false));
  it.run({batch_rows});
  EXPECT_EQ(it.launch_of(18).does, ids({18, 20}));
  ASSERT_EQ(it.launch_of(18).kernels.size(), 1U);
  EXPECT_EQ(it.launch_of(18).kernels[0].joins, 2);
}

TEST(BatchRows, stop_where_something_is_awaited) {
  PassRun it(two_tasks(), counting(true));
  it.run({batch_rows});
  EXPECT_EQ(it.launch_of(22).does, ids({22}));
  const auto refused = std::ranges::find(it.draft->decisions, TaskId(18), &Decision::task);
  ASSERT_NE(refused, it.draft->decisions.end());
  EXPECT_EQ(print(*refused), refusal(Reason::SignalBetween, 20, 22));
}

TEST(BatchRows, stop_where_something_is_raised_or_followed) {
  Plan plan = two_tasks();
  plan.syncs.push_back({.from = TaskId(18), .to = TaskId(37), .kind = SyncKind::Flag, .flag = 99});
  PassRun raised(plan, counting(true));
  raised.run({batch_rows});
  EXPECT_EQ(raised.launch_of(18).does, ids({18}));
  EXPECT_EQ(raised.decided(18), refusal(Reason::SignalBetween, 18, 20));
  plan = two_tasks();
  plan.syncs.push_back({.from = TaskId(18), .to = TaskId(36), .flag = 99});
  PassRun followed(plan, counting(true));
  followed.run({batch_rows});
  EXPECT_EQ(followed.launch_of(18).does, ids({18}));
  EXPECT_EQ(followed.decided(18), refusal(Reason::SignalBetween, 18, 20));
}

TEST(BatchRows, leave_alone_tasks_that_have_all_their_rows) {
  Abilities can = counting(true);
  can.counts_rows = [](TaskId task) { return task != TaskId(20); };
  PassRun it(two_tasks(), can);
  it.run({batch_rows});
  EXPECT_EQ(it.launch_of(18).does, ids({18}));
  EXPECT_EQ(it.launch_of(18), it.launch_before(18));
  EXPECT_EQ(it.decided(18), "");
}

TEST(BatchRows, leave_alone_tasks_of_other_statements) {
  Plan plan = two_tasks();
  plan.tasks[20].stmt = 1;
  PassRun it(plan, counting(true));
  it.run({batch_rows});
  EXPECT_EQ(it.launch_of(18).does, ids({18}));
  EXPECT_EQ(it.decided(18), "");
}

}  // namespace batch_rows_test
}  // namespace harpe::launch::passing
