#include "exec/fault.h"

#include <chrono>

#include "tests/unit/exec/fixture.h"

namespace harpe::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::HasSubstr;
using testing::MatchesRegex;

constexpr milliseconds kLimit{200};

TaskId first_of(const Plan& plan, TaskKind kind, std::int64_t rank) {
  for (std::size_t task = 0; task < plan.tasks.size(); ++task) {
    if (plan.tasks[task].kind == kind &&
        plan.queues[plan.tasks[task].queue.index()].rank == RankId(rank)) {
      return TaskId(static_cast<std::int64_t>(task));
    }
  }
  return {};
}

FaultReport faults_of(const Plan& plan, const CpuOptions& options) {
  Subject subject = prepare(plan, options);
  const auto begin = steady_clock::now();
  Result<RunStats, FaultReport> result =
      subject.executor->run({.iterations = 3, .wait_limit = kLimit});
  EXPECT_LT(steady_clock::now() - begin, 10 * kLimit);
  EXPECT_FALSE(result.ok());
  EXPECT_THROW((void)subject.executor->run({}), InternalError);  // the executor stays broken
  return result.ok() ? FaultReport{} : result.error();
}

TEST(Fault, names_the_worker_that_was_lost_first_and_then_who_waited_for_it) {
  const Plan plan = gather_gemm(3, 12, 12, 12, "f32");
  const TaskId copy = first_of(plan, TaskKind::Copy, 1);
  for (const QueueRunner runner : {QueueRunner::Pool, QueueRunner::Threads, QueueRunner::Stepper}) {
    const FaultReport report =
        faults_of(plan, {.runner = runner, .workers = 3, .lose_worker_at = copy});
    ASSERT_FALSE(report.empty());
    EXPECT_EQ(report[0].kind, FaultKind::WorkerLost);
    EXPECT_EQ(report[0].rank, RankId(1));
    EXPECT_EQ(report[0].task, copy);
    EXPECT_THAT(render(report),
                HasSubstr("rank 1 lost the worker that had reached task " +
                          std::to_string(copy.value) + " (copy a.home of rank 2 [2, *, *]"));
    if (runner == QueueRunner::Stepper) continue;
    ASSERT_EQ(report.size(), 3U);  // no rank ends without rank 1's pulls
    for (const std::size_t waiter : {1U, 2U}) {
      EXPECT_EQ(report[waiter].kind, FaultKind::WaitTimedOut);
      EXPECT_EQ(report[waiter].producer_rank, RankId(1));
      EXPECT_GE(report[waiter].elapsed, kLimit);
    }
    EXPECT_EQ(report[2].producer, copy);
  }
}

TEST(Fault, survives_the_loss_of_its_only_worker) {
  const Plan plan = gather_gemm(2, 12, 12, 12, "f32");
  const FaultReport report =
      faults_of(plan, {.workers = 1, .lose_worker_at = first_of(plan, TaskKind::Entry, 0)});
  ASSERT_FALSE(report.empty());
  EXPECT_EQ(report[0].kind, FaultKind::WorkerLost);
}

TEST(Fault, names_the_flag_that_was_not_raised_with_what_was_expected_and_seen) {
  const Plan plan = gather_gemm(2, 12, 12, 12, "f32");
  const TaskId copy = first_of(plan, TaskKind::Copy, 1);  // rank 0's Exit waits for it by flag
  for (const QueueRunner runner : {QueueRunner::Pool, QueueRunner::Threads, QueueRunner::Stepper}) {
    const FaultReport report =
        faults_of(plan, {.runner = runner, .workers = 2, .drop_signal_of = copy});
    ASSERT_EQ(report.size(), 2U);
    for (const Fault& fault : report) {
      EXPECT_EQ(fault.kind, FaultKind::WaitTimedOut);
      EXPECT_EQ(fault.producer, copy);
      EXPECT_EQ(fault.expected, 1);
      EXPECT_EQ(fault.observed, 0);
    }
    EXPECT_EQ(report[0].rank, RankId(0));
    EXPECT_THAT(report[0].signal, MatchesRegex("flag [0-9]+ of rank 0"));
    EXPECT_THAT(report[1].signal, HasSubstr("event of task " + std::to_string(copy.value)));
  }
}

TEST(Fault, names_the_member_that_did_not_come_to_a_collective) {
  const Plan plan = exchange(3, 9, true);
  const TaskId lost = first_of(plan, TaskKind::Collective, 2);
  const FaultReport report =
      faults_of(plan, {.runner = QueueRunner::Threads, .lose_worker_at = lost});
  ASSERT_EQ(report.size(), 3U);
  EXPECT_EQ(report[1].signal, "arrivals at collective 0");
  EXPECT_EQ(report[1].expected, 3);
  EXPECT_EQ(report[1].observed, 2);
  EXPECT_EQ(report[1].producer, lost);
}

TEST(Fault, renders_one_line_per_rank) {
  const FaultReport report = {{.kind = FaultKind::WaitTimedOut,
                               .rank = RankId(3),
                               .task = TaskId(12),
                               .task_text = "compute fwd.0 iter [3, 2]",
                               .signal = "flag 5 of rank 3",
                               .producer = TaskId(17),
                               .producer_rank = RankId(2),
                               .producer_text = "copy k.home [2] -> k.st [2]",
                               .expected = 1,
                               .observed = 0,
                               .elapsed = milliseconds(2000)},
                              {.kind = FaultKind::PeerFaulted,
                               .rank = RankId(4),
                               .task = TaskId(9),
                               .task_text = "exit of rank 4",
                               .signal = "",
                               .producer = {},
                               .producer_rank = {},
                               .producer_text = ""}};
  EXPECT_EQ(render(report),
            "rank 3 waited 2.0 s on flag 5 of rank 3 for 1, saw 0: task 12 (compute fwd.0 iter "
            "[3, 2]); its producer is task 17 of rank 2 (copy k.home [2] -> k.st [2])\n"
            "rank 4 stopped before task 9 (exit of rank 4), because a peer faulted\n");
}

}  // namespace
}  // namespace harpe::test
