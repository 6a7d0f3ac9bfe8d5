#include "sim/fused_stores.h"

#include <gtest/gtest.h>

#include "sim/build.h"
#include "tests/unit/sim/plans.h"

namespace harpe::test {
namespace {

TEST(FusedStores, are_the_copies_of_what_a_product_made) {
  const Plan plan = plan_of("gemm_rs", {"m=1024", "n=1024", "k=1024"}, "tp=4", "push");
  const auto fused_stores = find_fused_stores(plan);
  int copies = 0;
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    const bool is_copy = plan.tasks[i].kind == TaskKind::Copy;
    copies += is_copy ? 1 : 0;
    ASSERT_EQ(fused_stores[i].size(), is_copy ? 1U : 0U) << i;
    if (!is_copy) continue;
    const Task& product = plan.tasks[fused_stores[i].front().index()];
    EXPECT_EQ(product.kind, TaskKind::Compute);
    EXPECT_EQ(product.writes.front().boxes, plan.tasks[i].reads.front().boxes);
  }
  EXPECT_EQ(copies, 4 * 3);
}

// A core has no multiprocessors that could store while others multiply.
TEST(FusedStores, take_no_time_of_their_queue) {
  const Plan plan = plan_of("gemm_rs", {"m=1024", "n=1024", "k=1024"}, "tp=4", "push");
  Machine machine = plain_machine();
  for (const std::int64_t sms : {std::int64_t{100}, std::int64_t{1}}) {
    machine.processor.sms = sms;
    const BuiltWorkload built = build_workload(plan, machine, {});
    for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
      if (plan.tasks[i].kind != TaskKind::Copy) continue;
      const Activity& copy =
          built.workload.activities[static_cast<std::size_t>(built.work_of_task[i])];
      EXPECT_EQ(copy.queue == kNoQueue, sms > 1);
      EXPECT_EQ(copy.start.value == 0, sms > 1);
    }
  }
}

// Results that are moved as they are, and states of attention, are passes of their own.
TEST(FusedStores, are_sums_alone) {
  for (const char* op : {"ag_gemm", "attention"}) {
    const Plan plan = op == std::string("ag_gemm")
                          ? plan_of(op, {"m=1024", "n=1024", "k=1024"}, "tp=4", "push")
                          : plan_of(op, {"seq=1024", "heads=4"}, "cp=4", "tree");
    for (const auto& products : find_fused_stores(plan)) EXPECT_TRUE(products.empty()) << op;
  }
}

}  // namespace
}  // namespace harpe::test
