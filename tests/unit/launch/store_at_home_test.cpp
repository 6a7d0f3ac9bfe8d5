#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/proxy_plan.h"
#include "tests/unit/launch/pass_run.h"

// All-gather + GEMM on two ranks: on rank 0, task 34 rounds the sums of tasks 18, 20, … 32.
namespace harpe::launch::passing {
namespace store_at_home_test {

const std::vector<void (*)(Draft&)> kPasses = {join_panels, store_at_home};

void expect_apart(const PassRun& it, const std::string& why) {
  EXPECT_EQ(it.decided(34), why);
  EXPECT_EQ(it.launch_of(18), it.launch_before(18));
  EXPECT_EQ(it.launch_of(34), it.launch_before(34));
}

TEST(StoreAtHome, rounds_sums_in_the_kernel_that_makes_them) {
  PassRun it(harpe::test::push_plan());
  it.run(kPasses);
  EXPECT_EQ(it.decided(34), "applied");
  const Launch& launch = it.launch_of(34);
  EXPECT_EQ(launch.does, ids({18, 20, 22, 24, 26, 28, 30, 32, 34}));
  ASSERT_EQ(launch.kernels.size(), 1U);
  const std::vector<Panel>& before = it.launch_before(18).kernels.front().panels;
  const AllocId home = it.alloc(0, "c", Level::Home);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const Panel& panel = launch.kernels.front().panels[i];
    EXPECT_EQ(panel.stores, (std::vector<Place>{{home, before[i].stores.front().span}}));
    EXPECT_EQ(panel.dtype, DType::BF16);
    EXPECT_EQ(panel.meets, before[i].meets);
  }
  EXPECT_EQ(launch.kernels.front().arrivals, it.launch_before(18).kernels.front().arrivals);
}

// Attention continues from the state of earlier launches, and itself stores at home.
TEST(StoreAtHome, reads_a_carried_state_where_it_was) {
  Abilities can;
  can.edit = [](TaskId, Kernel& kernel) {
    if (!kernel.panels.empty()) kernel.panels.front().reads = kernel.panels.front().stores;
  };
  PassRun it(harpe::test::push_plan(), can);
  it.run(kPasses);
  EXPECT_EQ(it.decided(34), "applied");
  const Panel& panel = it.launch_of(18).kernels.front().panels.front();
  EXPECT_EQ(panel.reads.front().alloc, it.alloc(0, "c", Level::Acc));
  EXPECT_EQ(panel.stores.front().alloc, it.alloc(0, "c", Level::Home));
}

TEST(StoreAtHome, leaves_totals_of_several_states_apart) {
  Plan plan = harpe::test::push_plan();
  plan.tasks[34].reads.push_back(plan.tasks[34].reads.front());
  PassRun it(plan);
  it.run(kPasses);
  expect_apart(it, refusal(Reason::SeveralSources, 34, 2));
}

TEST(StoreAtHome, leaves_totals_apart_that_wait_for_something) {
  PassRun waiting(harpe::test::push_plan());
  waiting.add_wait(34, 1);
  waiting.run(kPasses);
  expect_apart(waiting, refusal(Reason::OtherWaits, 34, 1));
  PassRun behind(harpe::test::push_plan());
  behind.wiring.tasks[34].after = ids({2});
  behind.run(kPasses);
  expect_apart(behind, refusal(Reason::OtherWaits, 34, 1));
}

TEST(StoreAtHome, keeps_a_state_that_others_use) {
  for (const bool writes : {false, true}) {
    Plan plan = harpe::test::push_plan();
    const Ref state = plan.tasks[34].reads.front();
    (writes ? plan.tasks[35].writes : plan.tasks[35].reads).push_back(state);
    Abilities can;
    PassRun it(plan, can);
    it.run(kPasses);
    expect_apart(it, refusal(Reason::StateShared, 34, 35));
  }
}

TEST(StoreAtHome, keeps_a_state_that_other_launches_make_parts_of) {
  PassRun it(harpe::test::push_plan());
  it.groups = {.members = {}, .of_task = std::vector<int>(it.plan.tasks.size(), -1)};
  it.run(kPasses);  // every GEMM is a separate launch
  EXPECT_EQ(it.decided(34), refusal(Reason::NotWhole, 34));
  EXPECT_EQ(it.launch_of(32), it.launch_before(32));
}

TEST(StoreAtHome, leaves_kernels_alone_that_store_more_than_the_total_rounds) {
  Plan plan = harpe::test::push_plan();
  Range& rows = plan.tasks[34].reads.front().boxes.front().front();
  rows = {0, 1};
  PassRun it(plan);
  it.run(kPasses);
  expect_apart(it, refusal(Reason::NotWhole, 34));
}

TEST(StoreAtHome, leaves_kernels_alone_that_add_to_what_is_there) {
  Plan plan = harpe::test::push_plan();
  for (Task& task : plan.tasks) {
    if (task.kind == TaskKind::Compute) task.writes.front().mode = WriteMode::Add;
  }
  PassRun it(plan);
  it.run(kPasses);
  expect_apart(it, refusal(Reason::AddsUp, 34));
}

TEST(StoreAtHome, leaves_kernels_alone_that_have_no_panels) {
  Abilities can;
  can.edit = [](TaskId task, Kernel& kernel) {
    if (task == TaskId(32)) kernel.panels.clear();
  };
  PassRun it(harpe::test::push_plan(), can);
  it.groups = {.members = {}, .of_task = std::vector<int>(it.plan.tasks.size(), -1)};
  it.run(kPasses);
  EXPECT_EQ(it.decided(34), refusal(Reason::NoPanels, 34));
  EXPECT_EQ(it.launch_of(32), it.launch_before(32));
}

TEST(StoreAtHome, leaves_homes_of_another_type_to_the_total) {
  Plan plan = harpe::test::push_plan();
  plan.allocs[plan.tasks[34].writes.front().alloc.index()].dtype = DType::F16;
  PassRun it(plan);
  it.run(kPasses);
  expect_apart(it, refusal(Reason::OtherType, 34));
}

TEST(StoreAtHome, leaves_totals_apart_where_no_kernel_stores_so) {
  Abilities can;
  can.can = [](const Launch&, const Kernel& kernel) {
    return kernel.panels.front().dtype == DType::F32;
  };
  PassRun it(harpe::test::push_plan(), can);
  it.run(kPasses);
  expect_apart(it, refusal(Reason::NoKernel, 8, 8));
}

}  // namespace store_at_home_test
}  // namespace harpe::launch::passing
