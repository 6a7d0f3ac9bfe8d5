#include "verify/order.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/verify/plans.h"
#include "verify/clocks.h"

namespace harpe::test {
namespace {

TEST(Order, follows_queues_and_syncs) {
  const RingGemm p;
  const auto model = verifier::Model::make(p.hand.plan.program, p.hand.plan.mesh, p.hand.plan.form);
  const auto order = verifier::Order::make(p.hand.plan, {p.hand.plan, *model});
  ASSERT_TRUE(order.ok());
  const auto at = [&](int task) {
    return std::ranges::find(order->sequence, task) - order->sequence.begin();
  };
  EXPECT_EQ(order->sequence.size(), 12U);
  for (const Sync& sync : p.hand.plan.syncs) EXPECT_LT(at(sync.from.value), at(sync.to.value));
  EXPECT_LT(at(4), at(6));
}

TEST(Order, makes_one_unit_of_a_group) {
  const Gather p;
  const auto model = verifier::Model::make(p.hand.plan.program, p.hand.plan.mesh, p.hand.plan.form);
  const auto order = verifier::Order::make(p.hand.plan, {p.hand.plan, *model});
  ASSERT_TRUE(order.ok());
  EXPECT_EQ(order->unit_of(2), order->unit_of(3));
  EXPECT_EQ(order->members(order->unit_of(2)).size(), 2U);
  EXPECT_EQ(order->sequence.size(), 7U);
}

TEST(Clocks, know_what_is_over_when_a_task_starts) {
  const Gather p;
  const auto model = verifier::Model::make(p.hand.plan.program, p.hand.plan.mesh, p.hand.plan.form);
  const auto order = verifier::Order::make(p.hand.plan, {p.hand.plan, *model});
  ASSERT_TRUE(order.ok());
  verifier::Clocks clocks(*order);
  for (const std::int32_t unit : order->sequence) {
    for (const std::int32_t task : order->members(unit)) {
      const verifier::Row clock = clocks.start(task);
      const auto knows = [&](std::int32_t other) {
        return clock.at(order->queue_of(other)) >= order->position_of(other);
      };
      if (task == 2) {
        EXPECT_TRUE(knows(0));
        EXPECT_FALSE(knows(1)) << "the other member's entry";
      }
      if (task == 4) {
        EXPECT_TRUE(knows(1)) << "before a member of the group, so before what follows it";
        EXPECT_TRUE(knows(2));
        EXPECT_FALSE(knows(3)) << "members are over one by one";
      }
    }
    clocks.finish(unit);
  }
}

TEST(VerifyDeadlock, names_a_cycle_of_two) {
  RingGemm p;
  p.hand.sync(TaskId(6), TaskId(2));
  EXPECT_EQ(
      finding(p.hand.plan),
      "error[V301]: no execution can finish: task 2 (copy on rank 0) waits for task 6 (compute "
      "mm.0 on rank 0) (sync 12), which waits for task 2 (copy on rank 0) (sync 6) (a cycle of 2)");
}

TEST(VerifyDeadlock, names_the_shortest_cycle) {
  RingGemm p;
  p.hand.sync(TaskId(8), TaskId(2));
  p.hand.sync(TaskId(7), TaskId(3));
  EXPECT_EQ(
      finding(p.hand.plan),
      "error[V301]: no execution can finish: task 3 (copy on rank 1) waits for task 7 (compute "
      "mm.0 on rank 1) (sync 13), which waits for task 3 (copy on rank 1) (sync 7) (a cycle of 2)");
}

TEST(VerifyDeadlock, names_a_task_that_waits_for_itself) {
  RingGemm p;
  p.hand.sync(TaskId(6), TaskId(6));
  EXPECT_EQ(finding(p.hand.plan),
            "error[V301]: no execution can finish: task 6 (compute mm.0 on rank 0) waits for task "
            "6 (compute mm.0 on rank 0) (sync 12) (a cycle of 1)");
}

TEST(VerifyDeadlock, names_members_that_wait_for_each_other) {
  Gather p;
  p.hand.sync(TaskId(2), TaskId(3));
  EXPECT_EQ(finding(p.hand.plan),
            "error[V301]: no execution can finish: task 3 (all_gather on rank 1) waits for task 2 "
            "(all_gather on rank 0) (sync 6), which meets the first in its group (a cycle of 1)");
}

TEST(VerifyDeadlock, sees_a_member_that_waits_for_what_follows_another) {
  Gather p;
  p.hand.sync(TaskId(4), TaskId(3));
  EXPECT_EQ(finding(p.hand.plan),
            "error[V301]: no execution can finish: task 4 (compute move.0 on rank 0) waits for "
            "task 2 (all_gather on rank 0) (sync 2), which meets task 3 (all_gather on rank 1), "
            "which waits for task 4 (compute move.0 on rank 0) (sync 6) (a cycle of 2)");
}

TEST(VerifyDeadlock, sees_a_cycle_through_a_barrier) {
  RingGemm p;
  p.hand.plan.barriers.push_back(
      {.from = {TaskId(6), TaskId(7)}, .to = {TaskId(2), TaskId(3)}, .flag = 5});
  EXPECT_EQ(finding(p.hand.plan),
            "error[V301]: no execution can finish: task 2 (copy on rank 0) waits for barrier 0, "
            "which waits for task 6 (compute mm.0 on rank 0), which waits for task 2 (copy on rank "
            "0) (sync 6) (a cycle of 3)");
}

}  // namespace
}  // namespace harpe::test
