#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/proxy_plan.h"
#include "tests/unit/launch/pass_run.h"

// All-gather + GEMM on two ranks: on rank 0, one kernel reads four chunks that tasks 2 to 5 copy
// within the rank, and four that rank 1 sends by tasks 10 to 13.
namespace harpe::launch::passing {
namespace read_in_place_test {

const std::vector<void (*)(Draft&)> kPasses = {join_panels, read_in_place};

TEST(ReadInPlace, reads_inputs_where_they_lie_and_makes_no_copy) {
  PassRun it(harpe::test::push_plan());
  it.run(kPasses);
  EXPECT_EQ(it.decided(18), "applied");
  const std::vector<Arrival>& arrivals = it.launch_of(18).kernels.front().arrivals;
  const std::vector<Arrival>& before = it.launch_before(18).kernels.front().arrivals;
  const AllocId home = it.alloc(0, "a", Level::Home);
  for (std::size_t i = 0; i < 8; ++i) {
    const bool is_own = i < 4;
    EXPECT_EQ(arrivals[i].reads[0].alloc, is_own ? home : before[i].reads[0].alloc);
    EXPECT_EQ(arrivals[i].reads[0].span, before[i].reads[0].span) << "the same rows of A";
    EXPECT_EQ(arrivals[i].reads[1], before[i].reads[1]) << "B lies at home anyway";
    EXPECT_EQ(arrivals[i].when, is_own ? std::nullopt : before[i].when);
  }
  for (const std::int64_t copy : {2, 3, 4, 5}) {
    EXPECT_TRUE(it.launch_of(copy).is_skipped);
    EXPECT_TRUE(it.launch_of(copy).kernels.empty());
    EXPECT_TRUE(it.launch_of(copy).raises.empty()) << "nothing waits for it";
  }
  EXPECT_FALSE(it.launch_of(10).is_skipped);
  EXPECT_EQ(it.draft->step_of(TaskId(18)).waiting, ids({26, 28, 30, 32}));
}

TEST(ReadInPlace, makes_copies_that_others_read_too) {
  Plan plan = harpe::test::push_plan();
  plan.tasks[34].reads.push_back(plan.tasks[18].reads.front());
  PassRun it(plan);
  it.run(kPasses);
  EXPECT_EQ(it.decided(18), "applied");
  EXPECT_EQ(it.launch_of(18).kernels[0].arrivals[0].reads[0].alloc, it.alloc(0, "a", Level::Home));
  EXPECT_EQ(it.launch_of(2), it.launch_before(2));
}

TEST(ReadInPlace, raises_what_others_wait_for_all_the_same) {
  Plan plan = harpe::test::push_plan();
  plan.syncs.push_back({.from = TaskId(2), .to = TaskId(37), .kind = SyncKind::Flag, .flag = 99});
  PassRun it(plan);
  it.run(kPasses);
  EXPECT_TRUE(it.launch_of(2).is_skipped);
  EXPECT_EQ(it.launch_of(2).raises, it.launch_before(2).raises);
  EXPECT_FALSE(it.launch_of(2).raises.empty());
}

TEST(ReadInPlace, keeps_the_signals_of_a_copy_that_waits) {
  PassRun it(harpe::test::push_plan());
  it.add_wait(2, 1);
  it.run(kPasses);
  EXPECT_TRUE(it.launch_of(2).is_skipped);
  EXPECT_EQ(it.launch_of(2).raises, it.launch_before(2).raises);
  EXPECT_FALSE(it.launch_of(2).raises.empty());
}

void expect_untouched(const Plan& plan) {
  PassRun it(plan);
  it.run(kPasses);
  EXPECT_EQ(it.decided(18), "");
  EXPECT_EQ(it.launch_of(18), it.launch_before(18));
  EXPECT_EQ(it.launch_of(2), it.launch_before(2));
}

TEST(ReadInPlace, leaves_alone_what_is_copied_from_elsewhere_or_converted) {
  const auto changed = [](auto change) {
    Plan plan = harpe::test::push_plan();
    change(plan.allocs[plan.tasks[2].reads.front().alloc.index()]);
    return plan;
  };
  expect_untouched(changed([](Alloc& from) { from.level = Level::Pack; }));
  expect_untouched(changed([](Alloc& from) { from.dtype = DType::F16; }));
  expect_untouched(changed([](Alloc& from) { from.rank = RankId(1); }));
  Plan output = harpe::test::push_plan();
  for (Decl& decl : output.program.decls) {
    auto* const buffer = std::get_if<Buffer>(&decl);
    if (buffer != nullptr && buffer->name == "a") buffer->role = Role::Out;
  }
  expect_untouched(output);
}

TEST(ReadInPlace, keeps_copies_where_no_kernel_reads_the_input) {
  Abilities can;
  can.can = [](const Launch&, const Kernel& kernel) {
    return std::ranges::all_of(kernel.arrivals, [&](const Arrival& arrival) {
      return arrival.reads[0].alloc == kernel.arrivals.back().reads[0].alloc;
    });
  };
  PassRun it(harpe::test::push_plan(), can);
  it.run(kPasses);
  EXPECT_EQ(it.decided(18), refusal(Reason::NotInPlace, 4, 8));
  EXPECT_EQ(it.launch_of(18), it.launch_before(18));
  EXPECT_EQ(it.launch_of(2), it.launch_before(2));
}

// Keys are copied, but their values are not.
TEST(ReadInPlace, reads_both_operands_in_place_or_none) {
  Abilities can;
  can.edit = [](TaskId, Kernel& kernel) {
    if (!kernel.panels.empty()) kernel.panels.front().reads = {kernel.panels[0].stores.front()};
  };
  PassRun it(harpe::test::push_plan(), can);
  it.run(kPasses);
  EXPECT_EQ(it.decided(18), refusal(Reason::NotInPlace, 8, 8));
  EXPECT_EQ(it.launch_of(18), it.launch_before(18));
}

TEST(ReadInPlace, has_no_rule_for_kernels_that_do_not_wait_inside) {
  PassRun it(harpe::test::push_plan());
  it.run({read_in_place});
  EXPECT_EQ(it.decided(18), "");
  EXPECT_EQ(it.launch_of(18), it.launch_before(18));
}

}  // namespace read_in_place_test
}  // namespace harpe::launch::passing
