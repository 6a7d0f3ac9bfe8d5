#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/launch/pass_run.h"

// After join_panels and store_at_home, the GEMM of `mapped` is one kernel with two panels.
namespace harpe::launch::passing {
namespace fuse_maps_test {

const std::vector<void (*)(Draft&)> kPasses = {join_panels, store_at_home, fuse_maps};

bool has_maps(const Kernel& kernel) {
  return std::ranges::any_of(kernel.panels, [](const Panel& panel) { return !panel.maps.empty(); });
}

Buffer& buffer_of(Plan& plan, std::string_view name) {
  const auto found = std::ranges::find_if(plan.program.decls, [&](const Decl& decl) {
    const auto* const buffer = std::get_if<Buffer>(&decl);
    return buffer != nullptr && buffer->name == name;
  });
  return std::get<Buffer>(*found);
}

void expect_apart(const PassRun& it, const std::string& why) {
  EXPECT_EQ(it.decided(12), why);
  EXPECT_EQ(it.launch_of(6), it.launch_before(6));
  EXPECT_EQ(it.launch_of(12), it.launch_before(12));
}

TEST(FuseMaps, apply_tasks_one_behind_another_in_the_kernel_before_them) {
  PassRun it(mapped());
  it.run(kPasses);
  EXPECT_EQ(it.decided(12), "applied");
  EXPECT_EQ(it.decided(14), "applied");
  const Launch& launch = it.launch_of(6);
  EXPECT_EQ(launch.does, ids({6, 8, 10, 12, 14}));
  ASSERT_EQ(launch.kernels.size(), 1U);
  const std::vector<Panel>& before = it.launch_before(6).kernels.front().panels;
  ASSERT_EQ(launch.kernels.front().panels.size(), before.size());
  const Place bias = {it.alloc(0, "bias", Level::Home), Span{{.begin = 0, .end = 128}}};
  for (std::size_t i = 0; i < before.size(); ++i) {
    const Panel& panel = launch.kernels.front().panels[i];
    EXPECT_EQ(panel.stores,
              (std::vector<Place>{{it.alloc(0, "y", Level::Home), before[i].stores.front().span}}));
    EXPECT_EQ(panel.dtype, DType::BF16);
    EXPECT_EQ(panel.maps, (std::vector<Map>{{.nest = "add", .reads = {bias}}, {.nest = "act"}}));
    EXPECT_EQ(panel.meets, before[i].meets);
  }
}

TEST(FuseMaps, leave_tasks_apart_that_wait_for_something) {
  Plan plan = mapped();
  plan.syncs.push_back({.from = TaskId(5), .to = TaskId(12), .kind = SyncKind::Flag, .flag = 99});
  PassRun it(plan);
  it.run(kPasses);
  expect_apart(it, refusal(Reason::SignalBetween, 10, 12));
}

// Otherwise replicas of a result would differ in their last bits.
TEST(FuseMaps, leave_a_statement_apart_of_which_one_rank_keeps_a_task) {
  Plan plan = mapped();
  plan.syncs.push_back({.from = TaskId(4), .to = TaskId(13), .kind = SyncKind::Flag, .flag = 99});
  PassRun it(plan);
  it.run(kPasses);
  expect_apart(it, refusal(Reason::NotEverywhere, 12, 1));
  EXPECT_EQ(it.decided(13), refusal(Reason::SignalBetween, 11, 13));
}

TEST(FuseMaps, leave_apart_what_no_kernel_does) {
  Abilities can;
  can.can = [](const Launch&, const Kernel& kernel) { return !has_maps(kernel); };
  PassRun it(mapped(), can);
  it.run(kPasses);
  expect_apart(it, refusal(Reason::NoKernel, 2, 2));
}

TEST(FuseMaps, keep_what_the_caller_has) {
  Plan plan = mapped();
  buffer_of(plan, "c").role = Role::Out;
  PassRun it(plan);
  it.run(kPasses);
  expect_apart(it, refusal(Reason::CallersResult, 12));
}

TEST(FuseMaps, keep_what_another_task_reads_as_well) {
  Plan plan = mapped();
  plan.tasks[14].reads.push_back(plan.tasks[12].reads.front());
  PassRun it(plan);
  it.run(kPasses);
  expect_apart(it, refusal(Reason::StateShared, 12, 14));
}

TEST(FuseMaps, keep_results_of_other_axes) {
  Plan plan = mapped();
  std::ranges::reverse(buffer_of(plan, "added").dims);
  PassRun it(plan);
  it.run(kPasses);
  expect_apart(it, refusal(Reason::OtherAxes, 12));
}

// Edits the GEMM as an earlier pass might leave it.
Panel& first_panel(Draft& draft) {
  return draft.steps[draft.step_at[6]].launch.kernels.front().panels.front();
}

TEST(FuseMaps, leave_kernels_alone_that_add_to_what_is_there) {
  PassRun it(mapped());
  it.run({join_panels, store_at_home, [](Draft& draft) { first_panel(draft).adds = true; },
          fuse_maps});
  expect_apart(it, refusal(Reason::AddsUp, 6));
}

TEST(FuseMaps, need_all_elements_that_the_task_reads) {
  PassRun it(mapped());
  it.run({join_panels, store_at_home,
          [](Draft& draft) { first_panel(draft).stores.front().span.front().end -= 128; },
          fuse_maps});
  expect_apart(it, refusal(Reason::NotWhole, 12));
}

}  // namespace fuse_maps_test
}  // namespace harpe::launch::passing
