#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/launch/pass_run.h"

// GEMM + one-shot all-reduce on three ranks: after the passes, task 15 and all others of rank 0 are
// one kernel.
namespace harpe::launch::passing {
namespace bound_epochs_test {

using Passes = std::vector<void (*)(Draft&)>;
const Passes kPasses = {join_panels, store_at_peers, add_at_home, bound_epochs};

Abilities bounding() {
  Abilities can;
  can.bounds_epochs = true;
  return can;
}

std::int64_t count_bounding(const PassRun& it) {
  return std::ranges::count_if(it.draft->steps, [](const Step& step) {
    return !step.is_joined && step.launch.bounds_epoch;
  });
}

// Expects `bounding` ranks whose kernel bounds the epoch, and the refusal `why` on rank 0.
void expect_left(const Abilities& can, const Passes& passes, std::int64_t bounding,
                 const std::string& why) {
  PassRun it(one_shot(), can);
  it.run(passes);
  EXPECT_EQ(count_bounding(it), bounding);
  EXPECT_EQ(it.decided(3), why);
}

TEST(BoundEpochs, has_a_kernel_that_is_all_of_an_execution_begin_and_end_it) {
  PassRun it(one_shot(), bounding());
  it.run(kPasses);
  EXPECT_EQ(count_bounding(it), 3);
  EXPECT_TRUE(it.launch_of(15).bounds_epoch);
  EXPECT_FALSE(it.launch_before(15).bounds_epoch);
  EXPECT_EQ(it.decided(3), "applied");
}

// On rank 0 task 12 is the Exit, which awaits the total of rank 1.
TEST(BoundEpochs, has_a_kernel_await_what_the_exit_does) {
  PassRun it(all_sums(), bounding());
  it.run({join_panels, store_at_peers, add_at_home, store_replicas, bound_epochs});
  EXPECT_EQ(count_bounding(it), 2);
  EXPECT_TRUE(it.launch_of(11).bounds_epoch);
  EXPECT_EQ(it.launch_of(12).awaits.size(), 1);
}

TEST(BoundEpochs, leaves_exits_that_wait_for_another_node) {
  const auto post_totals = [](Draft& draft) {
    for (const SignalId id : draft.step_of(TaskId(12)).launch.awaits) {
      draft.out.signals[id.index()].is_posted = true;
    }
  };
  PassRun it(all_sums(), bounding());
  it.run({join_panels, store_at_peers, add_at_home, store_replicas, post_totals, bound_epochs});
  EXPECT_FALSE(it.launch_of(11).bounds_epoch);
}

TEST(BoundEpochs, leaves_kernels_that_cannot) {
  PassRun it(one_shot());
  it.run(kPasses);
  EXPECT_EQ(count_bounding(it), 0);
}

// The sum is a separate kernel behind the GEMM.
TEST(BoundEpochs, has_a_kernel_that_others_follow_bound_the_execution) {
  PassRun it(one_shot(), bounding());
  it.run({join_panels, store_at_peers, bound_epochs});
  EXPECT_TRUE(it.launch_of(3).bounds_epoch);
  EXPECT_EQ(it.decided(3), "applied");
}

void move_the_sum(Draft& draft) { draft.step_of(TaskId(15)).launch.queue = QueueId(0); }

TEST(BoundEpochs, leaves_ranks_that_launch_more) {
  const std::string the_sum = refusal(Reason::OtherLaunches, 1);
  expect_left(bounding(), {join_panels, store_at_peers, move_the_sum, bound_epochs}, 2, the_sum);
}

// The Exit of rank 0 awaits what its Entry awaited, behind the sum.
void have_the_exit_await(Draft& draft) {
  Launch* entry = nullptr;
  for (Step& step : draft.steps) {
    Launch& launch = step.launch;
    if (step.is_joined || launch.rank != RankId(0)) continue;
    if (launch.begins_epoch) entry = &launch;
    if (draft.task(launch.does.front()).kind == TaskKind::Exit) launch.awaits = entry->awaits;
  }
}

TEST(BoundEpochs, leaves_kernels_before_an_exit_that_waits) {
  const Passes passes = {join_panels, store_at_peers, have_the_exit_await, bound_epochs};
  expect_left(bounding(), passes, 2, refusal(Reason::ExitBehind, 1));
}

TEST(BoundEpochs, leaves_more_ranks_than_a_kernel_awaits) {
  Abilities can = bounding();
  can.most_bounds = 1;
  expect_left(can, kPasses, 0, refusal(Reason::OtherBounds, 2, 2));
}

// The kernel would read the sums before the Entry's waits have ended.
void read_what_tasks_write(Draft& draft) {
  Kernel& kernel = draft.step_of(TaskId(15)).launch.kernels.front();
  kernel.arrivals.front().reads.back() = kernel.panels.front().stores.front();
}

TEST(BoundEpochs, leaves_kernels_that_read_what_tasks_write) {
  const Passes passes = {join_panels, store_at_peers, add_at_home, read_what_tasks_write,
                         bound_epochs};
  expect_left(bounding(), passes, 2, refusal(Reason::ReadsEarly));
}

TEST(BoundEpochs, leaves_kernels_that_count_rows) {
  Abilities can = bounding();
  can.counts_rows = [](TaskId) { return true; };
  expect_left(can, kPasses, 0, refusal(Reason::CountsRows));
}

// Without signals the kernel has no address of the rank's page.
void lose_signals(Draft& draft) {
  for (Kernel& kernel : draft.step_of(TaskId(15)).launch.kernels) {
    kernel.fused_stores.clear();
    for (Panel& panel : kernel.panels) {
      for (Addend& addend : panel.addends) addend.when.reset();
    }
  }
}

TEST(BoundEpochs, leaves_kernels_without_signals) {
  const Passes passes = {join_panels, store_at_peers, add_at_home, lose_signals, bound_epochs};
  expect_left(bounding(), passes, 2, refusal(Reason::NoSignals));
}

TEST(BoundEpochs, leaves_ranks_that_share_sms) {
  Abilities can = bounding();
  can.shares_sms = true;
  expect_left(can, {join_panels, store_at_peers, bound_epochs}, 0, refusal(Reason::SharedSms));
}

}  // namespace bound_epochs_test
}  // namespace harpe::launch::passing
