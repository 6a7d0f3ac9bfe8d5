#include <map>

#include "exec/describe.h"
#include "tests/gpu/executor/gpu_fixture.h"
#include "tests/support/proxy_plan.h"

namespace harpe::test {
namespace trace_test {

using std::chrono::nanoseconds;

// Sums of at most 96 products of values below 1, in f32.
constexpr double kBound = 1e-4;

class Traces : public OnGpus {
 protected:
  static RunStats traced(const Plan& plan, Executor& executor) {
    const auto stats = executor.run({.iterations = 3, .trace = true});
    EXPECT_TRUE(stats.ok()) << render(stats.error());
    EXPECT_EQ(stats->iterations.size(), 3U);
    EXPECT_EQ(stats->trace.size(), plan.tasks.size());
    return *stats;
  }

  // Tasks that a sync orders appear in this order, within the uncertainty of the ranks' clocks.
  static void expect_in_order(const Plan& plan, const RunStats& stats) {
    for (std::size_t task = 0; task < stats.trace.size(); ++task) {
      const TraceEvent& event = stats.trace[task];
      EXPECT_EQ(event.task.index(), task);
      EXPECT_LE(event.start, event.end) << task;
      EXPECT_GE(event.waited, nanoseconds(0)) << task;
      EXPECT_GE(event.start, event.waited) << task;
    }
    for (const Sync& sync : plan.syncs) {
      // A kernel may read its own rank's inputs in place, without waiting for their copy.
      const bool is_within = rank_of(plan, sync.from) == rank_of(plan, sync.to);
      if (is_within && plan.tasks[sync.to.index()].kernel >= 0) continue;
      EXPECT_GE(stats.trace[sync.to.index()].start + stats.clock_uncertainty,
                stats.trace[sync.from.index()].end)
          << sync.from.value << " before " << sync.to.value;
    }
    EXPECT_GT(stats.clock_uncertainty, nanoseconds(0));
  }
};

TEST_F(Traces, have_an_event_of_every_task_in_the_order_of_the_plan) {
  for (const Plan& plan :
       {exchange(2, 1000, false), exchange(4, 1000, true), gather_gemm(2, 50, 37, 43, "f32"),
        split_keys(2, 20, 30, true, "f32"), scatter_gemm(4, 50, 37, 43, "f32", true)}) {
    auto executor = make_ready(plan, {.trace = true});
    ASSERT_TRUE(executor.ok()) << render(executor.error());
    expect_in_order(plan, traced(plan, **executor));
    expect_right(**executor, plan, kBound);
  }
}

TEST_F(Traces, say_when_a_kernel_saw_what_it_waits_for) {
  const Plan plan = push_plan();
  auto executor = make_ready(plan, {.trace = true});
  ASSERT_TRUE(executor.ok()) << render(executor.error());
  expect_in_order(plan, traced(plan, **executor));
}

// Each rank's GEMM waits for the other rank's rows. Every block records its work, and its waits lie
// within that work.
TEST_F(Traces, tell_what_blocks_of_a_kernel_did) {
  const Plan plan = push_plan();
  auto executor = make_ready(plan, {.trace = true});
  ASSERT_TRUE(executor.ok()) << render(executor.error());
  const RunStats stats = traced(plan, **executor);
  for (const RankId rank : {RankId(0), RankId(1)}) {
    std::map<std::int32_t, KernelEvent> work;  // by block
    std::vector<KernelEvent> stands;
    for (const KernelEvent& event : stats.kernels) {
      if (rank_of(plan, event.kernel) != rank) continue;
      EXPECT_EQ(stats.trace[event.kernel.index()].kernel, event.kernel);
      EXPECT_LE(event.start, event.end);
      EXPECT_FALSE(event.copies);
      if (event.part == KernelPart::Work) work[event.block] = event;
      if (event.part == KernelPart::Stand) stands.push_back(event);
    }
    ASSERT_FALSE(work.empty());
    for (const auto& [block, event] : work) EXPECT_LT(event.start, event.end) << block;
    for (const KernelEvent& stand : stands) {
      ASSERT_TRUE(work.contains(stand.block));
      EXPECT_GE(stand.start, work[stand.block].start);
      EXPECT_LE(stand.end, work[stand.block].end);
    }
  }
}

TEST_F(Traces, are_kept_when_asked_for) {
  const Plan plan = gather_gemm(2, 64, 64, 64, "f32");
  auto executor = make_ready(plan, {.trace = true});
  ASSERT_TRUE(executor.ok()) << render(executor.error());
  const auto plain = (*executor)->run({.iterations = 2});
  ASSERT_TRUE(plain.ok()) << render(plain.error());
  EXPECT_TRUE(plain->trace.empty());
  EXPECT_TRUE(plain->kernels.empty());
  static_cast<void>(traced(plan, **executor));
  static_cast<void>(traced(plan, **executor));
  expect_right(**executor, plan, kBound);
}

}  // namespace trace_test
}  // namespace harpe::test
