#include <algorithm>

#include "exec/cuda/device/copy_args.h"
#include "sync/wiring.h"
#include "tests/gpu/executor/gpu_fixture.h"

namespace harpe::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLimit{300};
constexpr milliseconds kToReport{2000};

std::int64_t rank_in(const Plan& plan, std::size_t task) {
  return plan.queues[plan.tasks[task].queue.index()].rank.value;
}

// The first task of a kind on `rank` that signals another rank.
TaskId signalling(const Plan& plan, TaskKind kind, std::int64_t rank) {
  const sync::Wiring wiring = sync::wire(plan, sync::find_groups(plan), device::kCopyGranule);
  for (std::size_t task = 0; task < plan.tasks.size(); ++task) {
    if (plan.tasks[task].kind != kind || rank_in(plan, task) != rank) continue;
    const sync::TaskWiring& each = wiring.tasks[task];
    if (!each.raises.empty() || !each.arrivals.empty()) {
      return TaskId(static_cast<std::int64_t>(task));
    }
  }
  ADD_FAILURE() << "no " << print(kind) << " of rank " << rank << " signals";
  return TaskId(0);
}

// The exchange with one barrier: every copy waits until all ranks have entered.
Plan with_entry_barrier(std::int64_t ranks) {
  Plan plan = exchange(ranks, 1000, false);
  Barrier barrier{.from = {}, .to = {}, .flag = 1000};
  for (std::int64_t rank = 0; rank < ranks; ++rank) barrier.from.emplace_back(rank);
  for (std::size_t task = 0; task < plan.tasks.size(); ++task) {
    if (plan.tasks[task].kind == TaskKind::Copy) {
      barrier.to.emplace_back(static_cast<std::int64_t>(task));
    }
  }
  std::erase_if(plan.syncs, [&](const Sync& sync) {
    return plan.tasks[sync.from.index()].kind == TaskKind::Entry && sync.kind == SyncKind::Flag;
  });
  plan.barriers.push_back(std::move(barrier));
  return plan;
}

class Faults : public OnGpus {
 protected:
  // Drops the task's signals, then checks the fault report and that a new executor works.
  static void expect_named(const Plan& plan, TaskId task) {
    SCOPED_TRACE("task " + std::to_string(task.value));
    {
      auto executor = make_ready(plan, {.wait_limit = kLimit, .drop_signal_of = task});
      ASSERT_TRUE(executor.ok()) << render(executor.error());
      const auto start = steady_clock::now();
      const auto stats = (*executor)->run({.iterations = 20, .wait_limit = kLimit});
      EXPECT_LT(steady_clock::now() - start, kLimit + kToReport);
      ASSERT_FALSE(stats.ok());
      const FaultReport& report = stats.error();
      EXPECT_EQ(report.front().kind, FaultKind::WaitTimedOut) << render(report);
      // A counter with a missing arrival does not show whose: the likeliest producer is named.
      if (plan.mesh.ranks() == 2) {
        EXPECT_EQ(report.front().producer, task) << render(report);
        EXPECT_EQ(report.front().producer_rank.value, rank_in(plan, task.index()));
      }
      EXPECT_GE(report.front().elapsed, kLimit);
      // Every rank that failed has exactly one entry.
      for (std::int64_t rank = 0; rank < plan.mesh.ranks(); ++rank) {
        EXPECT_EQ(std::ranges::count(report, RankId(rank), &Fault::rank), 1) << render(report);
      }
      EXPECT_THROW((void)(*executor)->run({}), InternalError);
    }
    auto again = make_ready(plan);
    ASSERT_TRUE(again.ok()) << render(again.error());
    const auto stats = (*again)->run({.iterations = 5});
    ASSERT_TRUE(stats.ok()) << render(stats.error());
    expect_right(**again, plan, 1e-4);
  }
};

TEST_F(Faults, name_a_copy_that_does_not_say_it_is_there) {
  const Plan plan = scatter_gemm(2, 50, 37, 43, "f32", false);
  expect_named(plan, signalling(plan, TaskKind::Copy, 1));
}

TEST_F(Faults, name_a_computation) {
  for (const std::int64_t ranks : {2, 4}) {
    const Plan plan = split_keys(ranks, 20, 30, false, "f32");
    expect_named(plan, signalling(plan, TaskKind::Compute, 1));
  }
}

TEST_F(Faults, name_the_rank_that_does_not_enter) {
  for (const std::int64_t ranks : {2, 4}) {
    const Plan plan = exchange(ranks, 1000, false);
    expect_named(plan, signalling(plan, TaskKind::Entry, ranks - 1));
    const Plan behind_a_barrier = with_entry_barrier(ranks);
    expect_named(behind_a_barrier, signalling(behind_a_barrier, TaskKind::Entry, ranks - 1));
  }
}

TEST_F(Faults, name_the_member_that_misses_a_collective) {
  for (const std::int64_t ranks : {2, 4}) {
    const Plan gather = exchange(ranks, 1000, true);
    expect_named(gather, signalling(gather, TaskKind::Collective, ranks - 1));
    const Plan scatter = scatter_gemm(ranks, 50, 37, 43, "f32", true);
    expect_named(scatter, signalling(scatter, TaskKind::Collective, 0));
  }
}

}  // namespace
}  // namespace harpe::test
