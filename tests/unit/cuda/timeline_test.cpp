#include "exec/cuda/executor/timeline.h"

#include <gtest/gtest.h>

namespace harpe::cuda {
namespace {

using std::chrono::nanoseconds;

constexpr std::int64_t kStamp = 10;
const ClockFit kSame{};  // the host's clock

// Tasks of one rank, each behind a separate sync with a signal.
struct Rank {
  Plan plan;
  launch::LaunchPlan launch_plan;
  std::vector<PreparedLaunch> launches;
  RankTimes times;

  explicit Rank(std::vector<TaskKind> kinds) {
    times.stamp_ns = kStamp;
    for (const TaskKind kind : kinds) {
      Task task;
      task.kind = kind;
      const auto index = static_cast<std::int32_t>(plan.tasks.size());
      Sync sync;
      sync.to = TaskId(index);
      plan.tasks.push_back(task);
      plan.syncs.push_back(sync);
      launch_plan.signals.push_back({.rank = RankId(0), .index = index});
      times.sightings.push_back({.seen_ns = device::kNever, .awaited_ns = device::kNever});
    }
  }

  void add_launch(std::vector<TaskId> tasks, bool waits_inside, const LaunchTimes& stamps) {
    launch::Launch launch{.rank = RankId(0), .queue = QueueId(0)};
    launch::Kernel kernel;
    for (const TaskId task : tasks) {
      kernel.arrivals.push_back({.reads = {}, .when = launch::SignalId(task.value)});
    }
    launch.does = std::move(tasks);
    if (waits_inside) launch.kernels.push_back(std::move(kernel));
    launches.push_back(
        {.id = launch::LaunchId(static_cast<std::int64_t>(launch_plan.launches.size()))});
    launch_plan.launches.push_back(std::move(launch));
    times.launches.push_back(stamps);
  }
  [[nodiscard]] std::vector<TraceEvent> events() const {
    const SignalPages pages(launch_plan, 1);
    return events_of({plan, launch_plan, pages, launches}, times, kSame);
  }
  [[nodiscard]] std::vector<KernelEvent> kernels() const {
    const SignalPages pages(launch_plan, 1);
    return kernels_of({plan, launch_plan, pages, launches}, times, kSame);
  }
};

TEST(Timeline, tells_waiting_from_working) {
  Rank rank({TaskKind::Compute});
  rank.add_launch({TaskId(0)}, false, {.reached = 100, .start = 150, .end = 400});
  const std::vector<TraceEvent> events = rank.events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].start, nanoseconds(150));
  EXPECT_EQ(events[0].end, nanoseconds(400));
  // The time that a stamp takes does not count as waiting.
  EXPECT_EQ(events[0].waited, nanoseconds(50 - kStamp));
}

TEST(Timeline, has_no_time_for_what_launches_nothing) {
  Rank rank({TaskKind::Entry});
  rank.add_launch({TaskId(0)}, false, {.start = 150});
  const std::vector<TraceEvent> events = rank.events();
  EXPECT_EQ(events[0].start, nanoseconds(150));
  EXPECT_EQ(events[0].end, nanoseconds(150));
  EXPECT_EQ(events[0].waited, nanoseconds(0));
}

TEST(Timeline, begins_tasks_of_a_kernel_when_it_sees_their_signals) {
  Rank rank({TaskKind::Compute, TaskKind::Compute, TaskKind::Compute, TaskKind::Finalise});
  rank.times.sightings[1] = {.seen_ns = 300, .awaited_ns = 260};
  rank.times.sightings[2] = {.seen_ns = 350, .awaited_ns = device::kNever};
  rank.add_launch({TaskId(0), TaskId(1), TaskId(2), TaskId(3)}, true, {.start = 100, .end = 500});
  const std::vector<TraceEvent> events = rank.events();
  ASSERT_EQ(events.size(), 4U);
  const std::int64_t starts[] = {100, 300, 350, 500};
  const std::int64_t waited[] = {0, 40, 0, 0};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(events[i].start, nanoseconds(starts[i])) << i;
    EXPECT_EQ(events[i].end, nanoseconds(500)) << i;
    EXPECT_EQ(events[i].waited, nanoseconds(waited[i])) << i;
  }
}

// A signal that came before the kernel began is not waited for.
TEST(Timeline, begins_no_task_before_its_kernel) {
  Rank rank({TaskKind::Compute});
  rank.times.sightings[0] = {.seen_ns = 90, .awaited_ns = 80};
  rank.add_launch({TaskId(0)}, true, {.start = 100, .end = 500});
  EXPECT_EQ(rank.events()[0].start, nanoseconds(100));
  EXPECT_EQ(rank.events()[0].waited, nanoseconds(0));
}

// Records of three blocks: one multiplies, one copies, one was not launched.
TEST(Timeline, tells_of_the_blocks_of_a_kernel_that_noted_them) {
  Rank rank({TaskKind::Compute, TaskKind::Compute});
  rank.add_launch({TaskId(0), TaskId(1)}, true, {.reached = 100, .start = 150, .end = 900});
  std::vector<device::BlockNotes> notes(3);
  notes[0].begin_ns = 200;
  notes[0].end_ns = 800;
  notes[0].stand_count = 2;
  notes[0].stands[0] = {.since_ns = 210, .until_ns = 300};
  notes[0].stands[1] = {.since_ns = 500, .until_ns = 520};
  notes[1].begin_ns = 205;
  notes[1].end_ns = 400;
  notes[1].copies = 1;
  rank.times.notes[TaskId(0)] = notes;
  const auto event = [](std::int32_t block, KernelPart part, bool copies, int start, int end) {
    return KernelEvent{.kernel = TaskId(0),
                       .block = block,
                       .part = part,
                       .copies = copies,
                       .start = nanoseconds(start),
                       .end = nanoseconds(end)};
  };
  EXPECT_EQ(rank.kernels(),
            (std::vector<KernelEvent>{event(0, KernelPart::Held, false, 150 - (50 - kStamp), 150),
                                      event(0, KernelPart::Work, false, 200, 800),
                                      event(0, KernelPart::Stand, false, 210, 300),
                                      event(0, KernelPart::Stand, false, 500, 520),
                                      event(1, KernelPart::Work, true, 205, 400)}));
  for (const TraceEvent& task : rank.events()) EXPECT_EQ(task.kernel, TaskId(0));
  rank.times.notes.clear();
  EXPECT_TRUE(rank.kernels().empty());
  for (const TraceEvent& task : rank.events()) EXPECT_FALSE(task.kernel.valid());
}

TEST(Timeline, begins_at_the_first_wait) {
  const Timeline timeline = from_the_first(
      {.events = {{.task = TaskId(1), .start = nanoseconds(700), .end = nanoseconds(900)},
                  {.task = TaskId(0),
                   .start = nanoseconds(720),
                   .end = nanoseconds(730),
                   .waited = nanoseconds(120)}},
       .kernels = {{.kernel = TaskId(1), .start = nanoseconds(710), .end = nanoseconds(880)}}});
  const std::vector<TraceEvent>& events = timeline.events;
  EXPECT_EQ(events[0].task, TaskId(0));
  EXPECT_EQ(events[0].start, nanoseconds(120));
  EXPECT_EQ(events[1].start, nanoseconds(100));
  EXPECT_EQ(events[1].end, nanoseconds(300));
  EXPECT_EQ(timeline.kernels[0].start, nanoseconds(110));
  EXPECT_EQ(timeline.kernels[0].end, nanoseconds(280));
}

}  // namespace
}  // namespace harpe::cuda
