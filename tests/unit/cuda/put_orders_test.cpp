#include "exec/processes/put_orders.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "exec/describe.h"
#include "sync/nodes.h"
#include "tests/support/proxy_plan.h"
#include "tests/unit/exec/plans.h"

namespace harpe::cuda {
namespace {

using processes::PutOrder;
using transport::Follows;

std::map<TaskId, PutOrder> order_puts(const Plan& plan) {
  return processes::order_puts(plan, sync::puts_of(plan));
}

// The operations that may follow each put of rank 0, in the order of its queue.
std::vector<Follows> follows_of_rank_0(const Plan& plan) {
  std::vector<Follows> follows;
  const auto orders = order_puts(plan);
  for (const TaskId put : sync::puts_of(plan)) {
    if (rank_of(plan, put).value == 0) follows.push_back(orders.at(put).follows);
  }
  return follows;
}

// Four puts to one rank.
TEST(PutOrders, share_a_signal_as_the_fence_says) {
  const std::vector<Follows> alone(4, Follows::Nothing);
  const std::vector<Follows> together = {Follows::Group, Follows::Group, Follows::Group,
                                         Follows::Nothing};
  for (const Fence fence : test::kAllFences) {
    SCOPED_TRACE(print(fence));
    const Plan plan = test::by_proxy(test::push_plan(), fence);
    const bool shares =
        fence == Fence::PerDestination || fence == Fence::Batched || fence == Fence::OneQuiet;
    EXPECT_EQ(follows_of_rank_0(plan), shares ? together : alone);
    for (const auto& [put, order] : order_puts(plan)) EXPECT_EQ(order.fence, fence);
  }
}

TEST(PutOrders, begin_a_batch_where_a_put_waits_for_others) {
  Plan plan = test::by_proxy(test::push_plan(), Fence::Batched);
  std::vector<TaskId> puts;
  for (const TaskId put : sync::puts_of(plan)) {
    if (rank_of(plan, put).value == 0) puts.push_back(put);
  }
  const auto compute = std::ranges::find_if(
      plan.tasks, [](const Task& task) { return task.kind == TaskKind::Compute; });
  plan.syncs.push_back({.from = TaskId(compute - plan.tasks.begin()), .to = puts[2]});
  EXPECT_EQ(follows_of_rank_0(plan),
            (std::vector{Follows::Group, Follows::Nothing, Follows::Group, Follows::Nothing}));
}

// Waits of the queue may depend on earlier signals, as combine depends on dispatch.
TEST(PutOrders, begin_a_batch_behind_anything_of_the_queue_that_waits) {
  Plan plan = test::by_proxy(test::push_plan(), Fence::PerDestination);
  std::vector<TaskId> puts;
  for (const TaskId put : sync::puts_of(plan)) {
    if (rank_of(plan, put).value == 0) puts.push_back(put);
  }
  // The third copy stays on its rank, so it is not a put, but it is in the same queue.
  Task& third = plan.tasks[puts[2].index()];
  third.writes = third.reads;
  const auto compute = std::ranges::find_if(
      plan.tasks, [](const Task& task) { return task.kind == TaskKind::Compute; });
  EXPECT_EQ(follows_of_rank_0(plan),
            (std::vector{Follows::Group, Follows::Group, Follows::Nothing}));
  plan.syncs.push_back({.from = TaskId(compute - plan.tasks.begin()), .to = puts[2]});
  EXPECT_EQ(follows_of_rank_0(plan),
            (std::vector{Follows::Group, Follows::Nothing, Follows::Nothing}));
}

// One put to each of two ranks: an epoch's signals wait for both, a batch's only for their own.
TEST(PutOrders, end_an_epoch_behind_the_last_of_all_ranks) {
  const Plan plan = test::scatter_gemm(3, 12, 8, 8, "f32", false);
  for (const Fence fence : {Fence::OneQuiet, Fence::PerDestination}) {
    Plan puts = test::by_proxy(plan, fence);
    // Each put waits for the GEMM that makes its data; these waits are removed here.
    std::erase_if(puts.syncs, [&](const Sync& sync) { return sync::goes_out(puts, sync.to); });
    const Follows first = fence == Fence::OneQuiet ? Follows::Epoch : Follows::Nothing;
    EXPECT_EQ(follows_of_rank_0(puts), (std::vector{first, Follows::Nothing}));
  }
}

TEST(PutOrders, go_with_the_next_of_their_queue_and_take_the_strictest) {
  Plan plan = test::by_proxy(test::push_plan(), Fence::Batched);
  const std::vector<TaskId> puts = sync::puts_of(plan);
  const auto is_of = [](TaskId put) {
    return [put](const Sync& sync) { return sync.from == put; };
  };
  std::erase_if(plan.syncs, is_of(puts[0]));
  Sync extra = *std::ranges::find_if(plan.syncs, is_of(puts[1]));
  extra.fence = Fence::PerPut;
  plan.syncs.push_back(extra);
  EXPECT_EQ(order_puts(plan).at(puts[1]).fence, Fence::PerPut);
  EXPECT_EQ(order_puts(plan).at(puts[0]).fence, Fence::PerPut);
  EXPECT_EQ(order_puts(plan).at(puts[2]).fence, Fence::Batched);
}

// A third rank learns of a put from its destination, so the network does not raise that signal
// behind the put.
TEST(PutOrders, take_no_fence_of_third_ranks) {
  Plan plan = test::by_proxy(test::scatter_gemm(3, 12, 8, 8, "f32", false), Fence::Batched);
  const TaskId put = sync::puts_of(plan).front();
  const RankId to = destination_of(plan, plan.tasks[put.index()]);
  const auto third = std::ranges::find_if(plan.syncs, [&](const Sync& sync) {
    return rank_of(plan, sync.to) != to && rank_of(plan, sync.to) != rank_of(plan, put);
  });
  ASSERT_NE(third, plan.syncs.end());
  Sync extra = *third;
  extra.from = put;
  extra.fence = Fence::PerDestination;
  plan.syncs.push_back(extra);
  EXPECT_EQ(order_puts(plan).at(put).fence, Fence::Batched);
}

}  // namespace
}  // namespace harpe::cuda
