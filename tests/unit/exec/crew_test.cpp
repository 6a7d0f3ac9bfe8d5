#include <gtest/gtest.h>

#include "exec/cpu/runner.h"
#include "support/check.h"
#include "tests/unit/exec/plans.h"
#include "tests/unit/exec/steps.h"

namespace harpe::cpu {
namespace {

using std::chrono::milliseconds;
using test::no_work;
using test::steps_of;

processes::Partition alone(const Plan& plan) {
  return processes::Partition::alone(plan.mesh.ranks());
}

TEST(Crew, stops_its_threads_and_throws_again_what_one_of_them_threw) {
  const Plan plan = test::exchange(2, 4, false);
  Marking marking(plan, steps_of(plan), no_work(plan), std::nullopt, alone(plan));
  marking.begin(1, false);
  std::atomic<bool> stopped = false;
  Crew crew(marking, {}, nullptr, [&] {
    stopped = true;
    stopped.notify_all();
  });
  crew.start([&] { stopped.wait(false); });
  crew.start([] { raise_internal_error("false", "file", 1, "a kernel's own"); });
  EXPECT_THROW((void)crew.watch({.wait_limit = milliseconds(60'000)}), InternalError);
  EXPECT_TRUE(stopped);
}

TEST(Crew, stops_its_threads_when_the_caller_gives_up) {
  const Plan plan = test::exchange(2, 4, false);
  Marking marking(plan, steps_of(plan), no_work(plan), std::nullopt, alone(plan));
  marking.begin(3, false);
  EXPECT_EQ(marking.count_steps() % 3, 0);
  std::atomic<bool> stopped = false;
  Crew crew(marking, {}, nullptr, [&] {
    stopped = true;
    stopped.notify_all();
  });
  crew.start([&] { stopped.wait(false); });
  int asked = 0;
  const RunOutcome outcome = crew.watch({.progress = [&](std::int64_t done, std::int64_t of) {
    EXPECT_EQ(done, 0);
    EXPECT_EQ(of, marking.count_steps());
    return ++asked < 2;
  }});
  EXPECT_FALSE(outcome.finished);
  EXPECT_EQ(asked, 2);
}

TEST(Crew, ends_its_threads_when_it_goes_unwatched) {
  const Plan plan = test::exchange(2, 4, false);
  Marking marking(plan, steps_of(plan), no_work(plan), std::nullopt, alone(plan));
  std::atomic<bool> stopped = false;
  std::atomic<bool> ended = false;
  {
    Crew crew(marking, {}, nullptr, [&] {
      stopped = true;
      stopped.notify_all();
    });
    crew.start([&] {
      stopped.wait(false);
      ended = true;
    });
  }
  EXPECT_TRUE(ended);
}

TEST(Marking, counts_executions_and_lets_no_queue_ahead_of_its_rank) {
  // Queues of rank 1 depend only on their own Entry and must not begin without it.
  Plan plan = test::gather_gemm(2, 4, 4, 4, "f32");
  Marking marking(plan, steps_of(plan), no_work(plan), std::nullopt, alone(plan));
  const Marking::Wake nobody = [](std::int32_t) {};
  marking.begin(2, false);
  std::int32_t host = -1;
  for (std::int32_t queue = 0; queue < marking.queues(); ++queue) {
    const bool is_host = plan.queues[static_cast<std::size_t>(queue)].kind == QueueKind::Host;
    EXPECT_EQ(marking.is_ready(queue), is_host) << "lane " << queue;
    if (is_host && plan.queues[static_cast<std::size_t>(queue)].rank == RankId(1)) host = queue;
  }
  marking.step(host, nobody);
  EXPECT_FALSE(marking.is_ready(host));  // its Exit waits
  for (std::int32_t queue = 0; queue < marking.queues(); ++queue) {
    const Queue& made = plan.queues[static_cast<std::size_t>(queue)];
    if (made.kind != QueueKind::Sm) continue;
    EXPECT_EQ(marking.is_ready(queue), made.rank == RankId(1));
    if (made.rank == RankId(1)) {
      const TaskId first = marking.head(queue);
      marking.step(queue, nobody);  // the rank's own block
      EXPECT_TRUE(marking.has_run(marking.end_of(first), 1));
      EXPECT_FALSE(marking.has_run(marking.end_of(marking.head(queue)), 1));
      ASSERT_TRUE(marking.hindrance(queue).has_value());  // the next block must be pulled first
      EXPECT_EQ(marking.hindrance(queue)->epoch, 1);
      EXPECT_EQ(marking.hindrance(queue)->observed, 0);
    }
  }
}

}  // namespace
}  // namespace harpe::cpu
