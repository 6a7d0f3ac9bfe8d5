#include "sync/wired_order.h"

#include <gtest/gtest.h>

#include "tests/support/proxy_plan.h"
#include "tests/unit/exec/plans.h"

// All-gather + GEMM on two ranks: rank 1 sends by tasks 10 to 13, which tasks 26, 28, 30 and 32 of
// rank 0 wait for; rank 0 sends by 14 to 17 to tasks 27 to 33 of rank 1.
namespace harpe::sync {
namespace wired_order_test {

constexpr std::int64_t kChunkBytes = std::int64_t{32} << 10;

WiredOrder order_of(const Plan& plan) { return {plan, wire(plan, find_groups(plan), kChunkBytes)}; }

TEST(WiredOrder, goes_back_along_queues_events_and_signals) {
  const std::vector<bool> before = order_of(test::push_plan()).before(TaskId(28));
  for (const std::size_t task : {1U, 6U, 10U, 11U, 18U, 26U, 2U, 0U}) EXPECT_TRUE(before[task]);
  for (const std::size_t task : {12U, 30U, 14U, 19U, 27U}) EXPECT_FALSE(before[task]) << task;
}

TEST(WiredOrder, tells_what_begins_once_a_put_has_landed) {
  const Plan plan = test::by_proxy(test::push_plan(), Fence::PerPut);
  const std::vector<bool> behind = order_of(plan).behind_landing(TaskId(11));
  for (const std::size_t task : {28U, 30U, 32U, 34U, 36U}) EXPECT_TRUE(behind[task]) << task;
  EXPECT_FALSE(behind[26]) << "it is before in its queue";
  EXPECT_FALSE(behind[12]) << "the next put is posted at once";
  EXPECT_FALSE(behind[27]);
}

// An Entry waits for signals of the previous execution.
TEST(WiredOrder, is_of_one_execution) {
  const Plan plan = test::scatter_gemm(2, 8, 8, 8, "f32", false);
  const WiredOrder order = order_of(plan);
  for (std::size_t task = 0; task < plan.tasks.size(); ++task) {
    if (plan.tasks[task].kind != TaskKind::Entry) continue;
    const std::vector<bool> before = order.before(TaskId(static_cast<std::int64_t>(task)));
    EXPECT_EQ(before, std::vector<bool>(plan.tasks.size(), false));
  }
}

}  // namespace wired_order_test
}  // namespace harpe::sync
