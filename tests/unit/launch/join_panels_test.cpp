#include <gtest/gtest.h>

#include "tests/support/proxy_plan.h"
#include "tests/unit/launch/pass_run.h"

// All-gather + GEMM on two ranks: on rank 0, tasks 18, 20, … 32 are one kernel of the schedule.
// Each waits for one copy: 2 to 5 within the rank, 10 to 13 from rank 1.
namespace harpe::launch::passing {
namespace join_panels_test {

const std::vector<TaskId> kMembers = ids({18, 20, 22, 24, 26, 28, 30, 32});

TEST(JoinPanels, makes_one_kernel_that_waits_inside_in_the_plans_order) {
  PassRun it(harpe::test::push_plan());
  it.run({join_panels});
  const Launch& launch = it.launch_of(18);
  EXPECT_EQ(it.decided(18), "applied");
  EXPECT_EQ(launch.does, kMembers);
  EXPECT_TRUE(launch.awaits.empty());
  ASSERT_EQ(launch.kernels.size(), 1U);
  const Kernel& kernel = launch.kernels.front();
  ASSERT_EQ(kernel.arrivals.size(), 8U);
  ASSERT_EQ(kernel.panels.size(), 8U);
  const std::int64_t copies[] = {2, 3, 4, 5, 10, 11, 12, 13};
  for (std::size_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(it.signal_from(copies[i], 0).has_value());
    EXPECT_EQ(kernel.arrivals[i].when, it.signal_from(copies[i], 0));
    EXPECT_EQ(kernel.panels[i].meets, std::vector{static_cast<std::int32_t>(i)});
    EXPECT_EQ(kernel.panels[i].dtype, DType::F32) << "the sum is rounded later";
    const std::int64_t alone = kMembers[i].value;
    PassRun plain(harpe::test::push_plan());
    plain.run({});
    EXPECT_EQ(kernel.panels[i].stores, plain.launch_of(alone).kernels[0].panels[0].stores);
    EXPECT_EQ(kernel.arrivals[i].reads, plain.launch_of(alone).kernels[0].arrivals[0].reads);
  }
}

// Task 20 adds further columns of A to the sum that task 18 begins.
Plan adding_up(WriteMode mode) {
  Plan plan = harpe::test::push_plan();
  plan.tasks[20].writes = plan.tasks[18].writes;
  plan.tasks[20].writes.front().mode = mode;
  return plan;
}

TEST(JoinPanels, gives_a_panel_the_chunks_that_add_up) {
  PassRun it(adding_up(WriteMode::Add));
  it.run({join_panels});
  const std::vector<Panel>& panels = it.launch_of(18).kernels.front().panels;
  ASSERT_EQ(panels.size(), 7U);
  EXPECT_EQ(panels[0].meets, (std::vector<std::int32_t>{0, 1}));
  EXPECT_FALSE(panels[0].adds);
  EXPECT_EQ(panels[1].meets, std::vector<std::int32_t>{2});
}

TEST(JoinPanels, leaves_apart_what_begins_a_sum_anew) {
  PassRun it(adding_up(WriteMode::Init));
  it.run({join_panels});
  EXPECT_EQ(it.decided(18), refusal(Reason::OtherPanels, 20));
  EXPECT_EQ(it.launch_of(18), it.launch_before(18));
}

TEST(JoinPanels, leaves_apart_panels_of_which_some_add_to_what_is_there) {
  Plan plan = harpe::test::push_plan();
  plan.tasks[22].writes.front().mode = WriteMode::Add;
  PassRun it(plan);
  it.run({join_panels});
  EXPECT_EQ(it.decided(18), refusal(Reason::OtherPanels, 22));
}

TEST(JoinPanels, leaves_apart_kernels_without_panels_or_of_other_names) {
  const auto edited = [](const std::function<void(Kernel&)>& edit) {
    Abilities can;
    can.edit = [=](TaskId task, Kernel& kernel) {
      if (task == TaskId(22)) edit(kernel);
    };
    PassRun it(harpe::test::push_plan(), can);
    it.run({join_panels});
    EXPECT_EQ(it.launch_of(18), it.launch_before(18));
    return it.decided(18);
  };
  EXPECT_EQ(edited([](Kernel& kernel) { kernel = {.name = "gemm"}; }),
            refusal(Reason::NoPanels, 22));
  EXPECT_EQ(edited([](Kernel& kernel) { kernel.name = "library_gemm"; }),
            refusal(Reason::NoPanels, 22));
}

TEST(JoinPanels, leaves_apart_a_task_that_waits_for_several_signals) {
  PassRun it(harpe::test::push_plan());
  it.add_wait(24, 10);
  it.run({join_panels});
  EXPECT_EQ(it.decided(18), refusal(Reason::SeveralWaits, 24, 2));
  EXPECT_EQ(it.launch_of(18), it.launch_before(18));
}

TEST(JoinPanels, lets_the_first_task_alone_stand_behind_other_queues) {
  PassRun first(harpe::test::push_plan());
  first.wiring.tasks[18].after = ids({0});
  first.run({join_panels});
  EXPECT_EQ(first.decided(18), "applied");
  ASSERT_EQ(first.launch_of(18).after.size(), 1U);
  PassRun later(harpe::test::push_plan());
  later.wiring.tasks[20].after = ids({0});
  later.run({join_panels});
  EXPECT_EQ(later.decided(18), refusal(Reason::BehindOtherQueue, 20, 1));
}

TEST(JoinPanels, leaves_apart_what_no_kernel_does_as_one) {
  Abilities can;
  can.can = [](const Launch& launch, const Kernel& kernel) {
    EXPECT_EQ(launch.does.size(), kernel.panels.size());
    return kernel.panels.size() < 8;
  };
  PassRun it(harpe::test::push_plan(), can);
  it.run({join_panels});
  EXPECT_EQ(it.decided(18), refusal(Reason::NoKernel, 8, 8));
  EXPECT_EQ(it.launch_of(18), it.launch_before(18));
}

// Kernels whose panels have separate rows and continue from the state stored there.
Abilities attention(const std::function<void(TaskId, Kernel&)>& edit) {
  Abilities can;
  can.edit = [=](TaskId task, Kernel& kernel) {
    if (kernel.panels.empty()) return;
    kernel.panels.front().reads = {kernel.panels.front().stores.front()};
    edit(task, kernel);
  };
  return can;
}

// A kernel combines queries and keys only once, even if several tasks load them.
TEST(JoinPanels, refuses_tasks_that_share_what_arrives) {
  const auto refused = [](bool waits) {
    std::optional<Kernel> first;
    PassRun it(harpe::test::push_plan(), attention([&](TaskId task, Kernel& kernel) {
                 if (task == TaskId(18)) first = kernel;
                 if (task == TaskId(20)) kernel.arrivals = first->arrivals;
               }));
    for (const std::size_t task : {18U, 20U}) {
      if (!waits) it.wiring.tasks[task].waits.clear();
    }
    it.run({join_panels});
    EXPECT_EQ(it.launch_of(18), it.launch_before(18));
    return it.decided(18);
  };
  EXPECT_EQ(refused(false), refusal(Reason::SharedArrivals, 8, 7));
  EXPECT_EQ(refused(true), refusal(Reason::SharedArrivals, 20)) << "each for a copy of its own";
}

TEST(JoinPanels, carries_a_panel_on_from_one_chunk_to_the_next) {
  const auto joined = [](bool carries_on) {
    std::optional<Kernel> first;
    PassRun it(harpe::test::push_plan(), attention([&](TaskId task, Kernel& kernel) {
                 if (task == TaskId(18)) first = kernel;
                 if (task != TaskId(20)) return;
                 kernel.panels = first->panels;
                 if (!carries_on) return;  // a state and its lse
                 std::vector<Place>& reads = kernel.panels.front().reads;
                 reads.insert(reads.end(), 2, first->panels[0].stores[0]);
               }));
    it.run({join_panels});
    return it.decided(18) == "applied" ? it.launch_of(18).kernels.front().panels.front().meets
                                       : std::vector<std::int32_t>{};
  };
  EXPECT_EQ(joined(true), (std::vector<std::int32_t>{0, 1}));
  EXPECT_TRUE(joined(false).empty()) << "it would begin anew";
}

}  // namespace join_panels_test
}  // namespace harpe::launch::passing
