#include "sim/engine.h"

#include <gtest/gtest.h>

#include "support/check.h"

namespace harpe {
namespace engine_test {

constexpr std::int64_t kMicro = 1'000'000;  // picoseconds

Picoseconds us(std::int64_t time) { return Picoseconds(time * kMicro); }

// Resources have capacity 1; an activity with `share` uses that much of them at full speed.
struct Builder {
  Workload workload;

  std::int32_t resource(double capacity = 1, ResourceKind kind = ResourceKind::Egress) {
    workload.resources.push_back({.kind = kind, .capacity = capacity});
    return static_cast<std::int32_t>(workload.resources.size()) - 1;
  }
  std::int32_t queue() { return workload.queues++; }
  std::int32_t activity(std::int32_t queue, std::int64_t work, std::vector<Use> uses = {},
                        std::int64_t start = 0) {
    workload.activities.push_back(
        {.queue = queue, .start = us(start), .work = us(work), .uses = std::move(uses)});
    return static_cast<std::int32_t>(workload.activities.size()) - 1;
  }
  void depend(std::int32_t before, std::int32_t after, std::int64_t delay = 0,
              WaitKind kind = WaitKind::Event) {
    workload.dependencies.push_back({before, after, kind, us(delay)});
  }
};

std::vector<std::int64_t> ends(const EngineRun& run) {
  std::vector<std::int64_t> all;
  for (const Span& span : run.spans) all.push_back(span.end.value / kMicro);
  return all;
}

TEST(Engine, nothing_takes_no_time) {
  const EngineRun run = run_workload({});
  EXPECT_EQ(run.total, Picoseconds());
  EXPECT_TRUE(run.spans.empty());
}

TEST(Engine, an_activity_takes_its_start_and_its_work) {
  Builder b;
  b.activity(b.queue(), 10, {}, 3);
  const EngineRun run = run_workload(b.workload);
  EXPECT_EQ(run.total, us(13));
  EXPECT_EQ(run.spans[0].ready, us(0));
  EXPECT_EQ(run.spans[0].begin, us(3));
  EXPECT_EQ(run.spans[0].cause, -1);
}

// Two at a time, in the order of readiness; the cause of a start is the end that freed its server.
TEST(Engine, a_pool_runs_in_the_order_of_readiness) {
  Builder b;
  const std::int32_t pool = b.queue();
  b.workload.servers = {2};
  const std::int32_t late = b.activity(kNoQueue, 3);
  const std::int32_t last = b.activity(pool, 5);  // ready at 3
  const std::int32_t first = b.activity(pool, 10);
  const std::int32_t second = b.activity(pool, 4);
  const std::int32_t third = b.activity(pool, 2);
  b.depend(late, last);
  const EngineRun run = run_workload(b.workload);
  EXPECT_EQ(ends(run), (std::vector<std::int64_t>{3, 11, 10, 4, 6}));
  EXPECT_EQ(run.spans[static_cast<std::size_t>(third)].cause, second);
  EXPECT_EQ(run.spans[static_cast<std::size_t>(third)].kind, WaitKind::Queue);
  EXPECT_EQ(run.spans[static_cast<std::size_t>(last)].cause, third);
  EXPECT_EQ(run.spans[static_cast<std::size_t>(first)].cause, -1);
}

// A free server waits for an activity that is known to become ready.
TEST(Engine, a_pool_waits_for_delays) {
  Builder b;
  const std::int32_t pool = b.queue();
  b.workload.servers = {1};
  const std::int32_t before = b.activity(kNoQueue, 1);
  b.depend(before, b.activity(pool, 2), 4);
  b.depend(before, b.activity(pool, 3), 2);
  EXPECT_EQ(ends(run_workload(b.workload)), (std::vector<std::int64_t>{1, 8, 6}));
}

TEST(Engine, a_queue_runs_in_the_order_of_indices) {
  Builder b;
  const std::int32_t queue = b.queue();
  b.activity(queue, 10, {}, 1);
  b.activity(queue, 5, {}, 1);
  b.activity(queue, 2);
  const EngineRun run = run_workload(b.workload);
  EXPECT_EQ(ends(run), (std::vector<std::int64_t>{11, 17, 19}));
  EXPECT_EQ(run.spans[2].cause, 1);
  EXPECT_EQ(run.spans[2].kind, WaitKind::Queue);
}

TEST(Engine, a_dependency_is_known_after_its_delay) {
  Builder b;
  const std::int32_t first = b.activity(b.queue(), 10);
  const std::int32_t second = b.activity(b.queue(), 5);
  b.depend(first, second, 2, WaitKind::Signal);
  const EngineRun run = run_workload(b.workload);
  EXPECT_EQ(run.spans[1].ready, us(12));
  EXPECT_EQ(run.spans[1].kind, WaitKind::Signal);
  EXPECT_EQ(run.total, us(17));
}

TEST(Engine, without_a_queue_only_dependencies_count) {
  Builder b;
  for (int i = 0; i < 3; ++i) b.activity(kNoQueue, 10);
  EXPECT_EQ(run_workload(b.workload).total, us(10));
}

TEST(Engine, two_that_share_a_port_take_twice_as_long) {
  Builder b;
  const std::int32_t port = b.resource();
  b.activity(b.queue(), 10, {{port, 1}});
  b.activity(b.queue(), 10, {{port, 1}});
  const EngineRun run = run_workload(b.workload);
  EXPECT_EQ(ends(run), (std::vector<std::int64_t>{20, 20}));
  EXPECT_EQ(run.spans[0].bound, port);
  EXPECT_DOUBLE_EQ(run.units[0], 20e-6);
}

TEST(Engine, two_that_fit_beside_each_other_do_not_slow_down) {
  Builder b;
  const std::int32_t port = b.resource();
  b.activity(b.queue(), 10, {{port, 0.5}});
  b.activity(b.queue(), 10, {{port, 0.5}});
  const EngineRun run = run_workload(b.workload);
  EXPECT_EQ(run.total, us(10));
  EXPECT_EQ(run.spans[0].bound, -1);
}

// 4 alone, then both at half speed until the first ends, then the second alone.
TEST(Engine, speeds_change_when_others_come_and_go) {
  Builder b;
  const std::int32_t port = b.resource();
  b.activity(b.queue(), 10, {{port, 1}});
  b.activity(b.queue(), 10, {{port, 1}}, 4);
  EXPECT_EQ(ends(run_workload(b.workload)), (std::vector<std::int64_t>{16, 20}));
}

// Three fractions rise to 1/3, where the first port is full. The rest of the second port lets the
// last activity rise to 2/3.
TEST(Engine, what_others_leave_is_shared_among_those_who_can_rise) {
  Builder b;
  const std::int32_t narrow = b.resource();
  const std::int32_t wide = b.resource();
  b.activity(b.queue(), 30, {{narrow, 1}});
  b.activity(b.queue(), 30, {{narrow, 1}});
  b.activity(b.queue(), 30, {{narrow, 1}, {wide, 1}});
  b.activity(b.queue(), 30, {{wide, 1}});
  const EngineRun run = run_workload(b.workload);
  EXPECT_EQ(ends(run), (std::vector<std::int64_t>{90, 90, 90, 45}));
  EXPECT_EQ(run.spans[2].bound, narrow);
  EXPECT_EQ(run.spans[3].bound, wide);
}

// Fairness concerns the fraction of full speed, not the amount of the resource.
TEST(Engine, one_that_needs_more_gets_more) {
  Builder b;
  const std::int32_t port = b.resource(4);
  b.activity(b.queue(), 10, {{port, 4}});
  b.activity(b.queue(), 10, {{port, 1}});
  EXPECT_EQ(run_workload(b.workload).spans[0].end.value, static_cast<std::int64_t>(12.5 * kMicro));
}

TEST(Engine, one_that_asks_for_more_than_there_is_is_slowed_alone) {
  Builder b;
  const std::int32_t port = b.resource(2);
  b.activity(b.queue(), 10, {{port, 4}});
  EXPECT_EQ(run_workload(b.workload).total, us(20));
}

TEST(Engine, longest_bound_is_the_one_that_held_back_longest) {
  Builder b;
  const std::int32_t first = b.resource();
  const std::int32_t second = b.resource();
  b.activity(b.queue(), 20, {{first, 1}, {second, 1}});
  b.activity(b.queue(), 2, {{first, 1}});      // 4 at a half
  b.activity(b.queue(), 6, {{second, 1}}, 4);  // 12 at a half
  const EngineRun run = run_workload(b.workload);
  EXPECT_EQ(run.spans[0].bound, second);
  EXPECT_EQ(ends(run), (std::vector<std::int64_t>{28, 4, 16}));
}

// A kernel that waits inside keeps its SMs; the copy kernel beside it gets the rest.
TEST(Engine, what_waits_in_a_running_kernel_keeps_its_sms) {
  for (const bool resident : {false, true}) {
    Builder b;
    const std::int32_t sms = b.resource(4, ResourceKind::Sm);
    const std::int32_t queue = b.queue();
    b.activity(queue, 10, {{sms, 4}});
    const std::int32_t waiting = b.activity(queue, 10, {{sms, 4}});
    const std::int32_t copy = b.activity(b.queue(), 20, {{sms, 4}}, 10);
    b.depend(copy, waiting);
    b.workload.activities[static_cast<std::size_t>(waiting)].resident = resident;
    const EngineRun run = run_workload(b.workload);
    EXPECT_EQ(run.spans[2].end, resident ? us(50) : us(30)) << resident;
  }
}

TEST(Engine, a_chain_of_nothing_ends_at_once) {
  Builder b;
  const std::int32_t queue = b.queue();
  std::int32_t last = b.activity(kNoQueue, 0);
  for (int i = 0; i < 5; ++i) {
    const std::int32_t next = b.activity(queue, 0);
    b.depend(last, next);
    last = next;
  }
  EXPECT_EQ(run_workload(b.workload).total, us(0));
}

TEST(Engine, what_waits_in_a_circle_is_a_bug) {
  Builder b;
  const std::int32_t first = b.activity(b.queue(), 1);
  const std::int32_t second = b.activity(b.queue(), 1);
  b.depend(first, second);
  b.depend(second, first);
  EXPECT_THROW((void)run_workload(b.workload), InternalError);
}

// 10 / 3 is not a whole number of picoseconds; ends are rounded up, never early.
TEST(Engine, ends_are_rounded_up) {
  Workload workload;
  workload.resources = {{.kind = ResourceKind::Egress, .capacity = 1}};
  workload.queues = 1;
  workload.activities = {{.queue = 0, .start = {}, .work = Picoseconds(10), .uses = {{0, 1.05}}}};
  EXPECT_EQ(run_workload(workload).total, Picoseconds(11));
}

}  // namespace engine_test
}  // namespace harpe
