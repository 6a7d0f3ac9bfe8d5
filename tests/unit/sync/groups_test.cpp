#include "sync/groups.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sync/wiring.h"
#include "tests/support/proxy_plan.h"
#include "tests/unit/exec/plans.h"

namespace harpe::sync {
namespace groups_test {

constexpr std::int64_t kChunkBytes = std::int64_t{32} << 10;

TEST(Groups, are_the_tasks_of_one_kernel) {
  const Plan plan = test::push_plan();
  const Groups groups = find_groups(plan);
  ASSERT_EQ(groups.members.size(), 2U);
  for (const std::vector<TaskId>& members : groups.members) {
    EXPECT_EQ(members.size(), 8U);
    for (const TaskId task : members) {
      EXPECT_EQ(plan.tasks[task.index()].kind, TaskKind::Compute);
      EXPECT_TRUE(groups.is_inside(task));
    }
  }
}

TEST(Groups, wait_for_signals_alone) {
  const Plan plan = test::push_plan();
  const Groups groups = find_groups(plan);
  const Wiring wiring = wire(plan, groups, kChunkBytes);
  for (const std::vector<TaskId>& members : groups.members) {
    for (const TaskId task : members) {
      EXPECT_EQ(wiring.tasks[task.index()].waits.size(), 1U);
      EXPECT_TRUE(task == members.front() || wiring.tasks[task.index()].after.empty());
    }
  }
}

// A kernel raises signals at its end, so it cannot wait for an answer to one of them. The group
// falls apart; the other kernel stays one.
TEST(Groups, fall_apart_where_their_end_would_close_a_circle) {
  Plan plan = test::push_plan();
  const std::vector<TaskId> members = find_groups(plan).members.front();
  const auto copy = std::ranges::find_if(plan.syncs, [&](const Sync& sync) {
    return sync.to == members.back() && sync.kind == SyncKind::Flag;
  });
  ASSERT_NE(copy, plan.syncs.end());
  plan.syncs.push_back(
      {.from = members.front(), .to = copy->from, .kind = SyncKind::Flag, .flag = 99});
  const Groups groups = find_groups(plan);
  ASSERT_EQ(groups.members.size(), 1U);
  EXPECT_NE(groups.members.front(), members);
  EXPECT_FALSE(groups.is_inside(members.front()));
}

TEST(Groups, leave_the_first_kernel_whole_where_the_second_closes_a_circle) {
  Plan plan = test::push_plan();
  const std::vector<std::vector<TaskId>> members = find_groups(plan).members;
  ASSERT_EQ(members.size(), 2U);
  const auto copy = std::ranges::find_if(plan.syncs, [&](const Sync& sync) {
    return sync.to == members[1].back() && sync.kind == SyncKind::Flag;
  });
  ASSERT_NE(copy, plan.syncs.end());
  plan.syncs.push_back(
      {.from = members[1].front(), .to = copy->from, .kind = SyncKind::Flag, .flag = 99});
  EXPECT_EQ(find_groups(plan).members, std::vector<std::vector<TaskId>>(1, members[0]));
}

TEST(Groups, are_none_where_a_task_waits_for_several) {
  Plan plan = test::push_plan();
  const std::vector<std::vector<TaskId>> members = find_groups(plan).members;
  plan.syncs.push_back(
      {.from = TaskId(11), .to = members[0].front(), .kind = SyncKind::Flag, .flag = 99});
  EXPECT_EQ(find_groups(plan).members, std::vector<std::vector<TaskId>>(1, members[1]));
}

// The receiver counts a TMA copy chunk by chunk.
TEST(Wiring, counts_the_chunks_of_a_copy_that_kernels_may_make) {
  constexpr std::int64_t kBytes = 3 * kChunkBytes + 16;
  Plan plan = test::scatter_gemm(2, 8, 8, 8, "f32", false);
  for (Task& task : plan.tasks) {
    if (task.kind != TaskKind::Copy) continue;
    task.via = Via::Tma;
    task.bytes = kBytes;
  }
  const Wiring wiring = wire(plan, find_groups(plan), kChunkBytes);
  int signals = 0;
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    if (plan.tasks[i].kind != TaskKind::Copy) continue;
    EXPECT_EQ(count_chunks(plan.tasks[i], kChunkBytes), 4U);
    for (const PageRaise& raise : wiring.tasks[i].raises) {
      EXPECT_EQ(raise.added, 4U);
      EXPECT_EQ(wiring.pages[raise.rank.index()][static_cast<std::size_t>(raise.signal)].arrivals,
                4);
      ++signals;
    }
  }
  EXPECT_GT(signals, 0);
}

// A library's collective ends on a rank only when no other rank needs that rank's part.
TEST(Wiring, lets_a_collective_that_ends_by_itself_raise_nothing_behind) {
  const Plan plan = test::exchange(2, 1000, true);
  Wiring wiring = wire(plan, find_groups(plan), kChunkBytes);
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    if (plan.tasks[i].kind != TaskKind::Collective) continue;
    TaskWiring& task = wiring.tasks[i];
    ASSERT_FALSE(task.raises_after_pull.empty());
    end_by_itself(task);
    EXPECT_TRUE(task.raises_after_pull.empty());
    EXPECT_FALSE(task.pulled);
    EXPECT_TRUE(task.arrival);
    EXPECT_EQ(task.arrivals.size(), 2U);
  }
}

}  // namespace groups_test
}  // namespace harpe::sync
