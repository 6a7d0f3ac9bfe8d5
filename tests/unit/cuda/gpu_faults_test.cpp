#include "exec/cuda/executor/gpu_faults.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "exec/cuda/target/launch_target.h"
#include "launch/make_launches.h"
#include "tests/unit/exec/plans.h"

namespace harpe::cuda {
namespace {

using launch::SignalKind;

// A plan with reports of its ranks, from which faults are collected.
struct Told {
  explicit Told(Plan of)
      : plan(std::move(of)),
        blocks(Blocks::make(plan.program, plan.mesh, plan.form).value()),
        launches(launch::make_launches(plan, blocks, LaunchTarget({})).value()),
        reports(static_cast<std::size_t>(plan.mesh.ranks())) {}

  [[nodiscard]] std::size_t rank_of(TaskId task) const {
    return plan.queues[plan.tasks[task.index()].queue.index()].rank.index();
  }
  [[nodiscard]] TaskId find(TaskKind kind, std::size_t rank) const {
    for (std::size_t task = 0; task < plan.tasks.size(); ++task) {
      const TaskId id(static_cast<std::int64_t>(task));
      if (plan.tasks[task].kind == kind && rank_of(id) == rank) return id;
    }
    return {};
  }

  // The launch on the task's own rank.
  [[nodiscard]] const launch::Launch& launch_of(TaskId task) const {
    return *std::ranges::find_if(launches.launches, [&](const launch::Launch& launch) {
      return !launch.lands && std::ranges::find(launch.does, task) != launch.does.end();
    });
  }

  // The first copy of a rank that waits for another rank.
  [[nodiscard]] TaskId waiting_copy(std::size_t rank) const {
    for (const launch::Launch& launch : launches.launches) {
      const TaskId id = launch.does.front();
      const bool waits = !launch.awaits.empty() && launch.rank.index() == rank;
      if (waits && plan.tasks[id.index()].kind == TaskKind::Copy) return id;
    }
    return {};
  }

  // Records that the task's wait for a signal of this kind expired in an epoch.
  void expire(TaskId task, SignalKind kind, std::uint32_t epoch = 1) {
    const std::size_t rank = rank_of(task);
    const launch::Launch& each = launch_of(task);
    launch::SignalId id;
    if (kind == SignalKind::Arrival) id = *each.all_ready;
    if (kind == SignalKind::Pulled) id = *each.all_pulled;
    if (kind == SignalKind::Sync || kind == SignalKind::Barrier) id = each.awaits.front();
    const SignalPages pages(launches, plan.mesh.ranks());
    const std::uint32_t expected = epoch * static_cast<std::uint32_t>(pages[id].arrivals);
    reports[rank].record =
        device::FaultRecord{.state = 1,
                            .name = static_cast<std::uint32_t>(pages.index_of(id)),
                            .expected = expected,
                            .seen = expected - 1,
                            .block = 0,
                            .task = static_cast<std::uint32_t>(task.value),
                            .elapsed_ns = 300'000'000};
    reports[rank].is_poisoned = true;
  }

  [[nodiscard]] FaultReport collect() const {
    return collect_gpu_faults(plan, blocks, launches, reports);
  }

  Plan plan;
  Blocks blocks;
  launch::LaunchPlan launches;
  std::vector<RankReport> reports;
};

TEST(GpuFaults, are_none_where_all_is_well) {
  EXPECT_TRUE(Told(test::exchange(3, 12, false)).collect().empty());
}

TEST(GpuFaults, name_the_producer_of_what_did_not_come_and_who_stopped) {
  Told told(test::scatter_gemm(2, 8, 8, 8, "f32", false));
  const TaskId finalise = told.find(TaskKind::Finalise, 0);
  told.expire(finalise, SignalKind::Sync, 7);
  told.reports[1].is_poisoned = true;
  const FaultReport report = told.collect();
  ASSERT_EQ(report.size(), 2U);
  EXPECT_EQ(report[0].kind, FaultKind::WaitTimedOut);
  EXPECT_EQ(report[0].task, finalise);
  EXPECT_EQ(report[0].producer, told.find(TaskKind::Copy, 1));
  EXPECT_EQ(report[0].producer_rank, RankId(1));
  EXPECT_EQ(report[0].expected, 7);
  EXPECT_EQ(report[0].observed, 6);
  EXPECT_EQ(report[0].elapsed, std::chrono::milliseconds(300));
  EXPECT_EQ(report[1].kind, FaultKind::PeerFaulted);
}

TEST(GpuFaults, begin_with_a_rank_that_is_lost) {
  Told told(test::exchange(3, 12, true));
  told.reports[1].is_lost = true;
  for (const std::size_t rank : {std::size_t{0}, std::size_t{2}}) {
    told.expire(told.find(TaskKind::Collective, rank), SignalKind::Arrival);
  }
  const FaultReport report = told.collect();
  ASSERT_EQ(report.size(), 3U);
  EXPECT_EQ(report[0].kind, FaultKind::PeerLost);
  EXPECT_EQ(report[0].rank, RankId(1));
  EXPECT_EQ(report[1].producer_rank, RankId(1));
  EXPECT_EQ(report[2].producer_rank, RankId(1));
  EXPECT_TRUE(render(report).starts_with("rank 1 answers no more: its process ended or hangs\n"));
}

TEST(GpuFaults, begin_with_a_gpu_that_failed) {
  Told told(test::exchange(2, 12, false));
  told.expire(told.waiting_copy(0), SignalKind::Sync);
  told.reports[1].end = CudaError{.call = "cuGraphLaunch",
                                  .status = CUDA_ERROR_ILLEGAL_ADDRESS,
                                  .name = "CUDA_ERROR_ILLEGAL_ADDRESS",
                                  .reason = "an illegal memory access was encountered",
                                  .where = {}};
  const FaultReport report = told.collect();
  ASSERT_EQ(report.size(), 2U);
  EXPECT_EQ(report[0].kind, FaultKind::DeviceFailed);
  EXPECT_EQ(report[0].rank, RankId(1));
}

// A rank that gave up on request is not the cause: its limit did not expire. It is listed last.
TEST(GpuFaults, name_what_was_given_up_behind_what_expired) {
  Told told(test::exchange(3, 12, true));
  for (std::size_t rank = 0; rank < 3; ++rank) {
    told.expire(told.find(TaskKind::Collective, rank), SignalKind::Arrival);
  }
  told.reports[0].record->state = device::kGivenUp;
  told.reports[0].record->elapsed_ns = 40'000'000;
  const FaultReport report = told.collect();
  ASSERT_EQ(report.size(), 3U);
  EXPECT_EQ(report[0].kind, FaultKind::WaitTimedOut);
  EXPECT_EQ(report[2].kind, FaultKind::WaitGivenUp);
  EXPECT_EQ(report[2].rank, RankId(0));
  EXPECT_TRUE(render({report[2]})
                  .starts_with("rank 0 gave up after 40 ms of waiting on arrivals at collective"))
      << render({report[2]});
}

// Rank 2's signals are lost: the others never see its arrival. Rank 2 continues and then waits for
// the others.
TEST(GpuFaults, of_a_collective_name_the_member_that_got_further) {
  Told told(test::exchange(4, 16, true));
  for (std::size_t rank = 0; rank < 4; ++rank) {
    told.expire(told.find(TaskKind::Collective, rank),
                rank == 2 ? SignalKind::Pulled : SignalKind::Arrival);
  }
  const FaultReport report = told.collect();
  ASSERT_EQ(report.size(), 4U);
  for (std::size_t at = 0; at < 3; ++at) EXPECT_EQ(report[at].producer_rank, RankId(2));
  EXPECT_EQ(report[3].rank, RankId(2));
}

// Rank 0 waits for rank 1's Entry, whose signal is lost. Rank 1 later waits for work that rank 0
// never did; that wait is not the cause.
TEST(GpuFaults, are_not_explained_by_waits_that_came_later) {
  Told told(test::exchange(2, 12, false));
  told.expire(told.waiting_copy(0), SignalKind::Sync);
  told.expire(told.find(TaskKind::Exit, 1), SignalKind::Sync);
  const FaultReport report = told.collect();
  ASSERT_EQ(report.size(), 2U);
  EXPECT_EQ(report[0].rank, RankId(0));
  EXPECT_EQ(report[0].producer, told.find(TaskKind::Entry, 1));
  EXPECT_EQ(report[1].rank, RankId(1));
}

}  // namespace
}  // namespace harpe::cuda
