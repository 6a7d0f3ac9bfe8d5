#include "sim/build.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "offers/gemm_tiles.h"
#include "sim/run.h"
#include "sim/tiles.h"
#include "tests/unit/sim/plans.h"

namespace harpe {
namespace build_test {

Picoseconds us(double time) { return from_microseconds(time); }

std::int64_t count(const BuiltWorkload& built, ActivityRole role) {
  return std::ranges::count(built.of, role, &BuiltActivity::role);
}

const Activity& work_of(const BuiltWorkload& built, std::size_t task) {
  return built.workload.activities[static_cast<std::size_t>(built.begin_of_task[task])];
}

// Kernels as on H200s, with no reserved SMs.
launch::LaunchPlan launched_on_all(const Plan& plan) {
  launch::LaunchPlan launches = launched_by_h200(plan);
  for (launch::Launch& launch : launches.launches) launch.reserved_sms = 0;
  return launches;
}

std::size_t first_task(const Plan& plan, TaskKind kind) {
  return static_cast<std::size_t>(std::ranges::find(plan.tasks, kind, &Task::kind) -
                                  plan.tasks.begin());
}

TEST(Build, every_task_has_its_work_in_its_queue) {
  const Plan plan = plan_of("ag_gemm", {"m=512", "n=512", "k=512"}, "tp=4", "ring");
  const BuiltWorkload built = build_workload(plan, plain_machine(), {});
  ASSERT_EQ(built.work_of_task.size(), plan.tasks.size());
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    EXPECT_EQ(work_of(built, i).queue, plan.tasks[i].queue.value);
  }
  EXPECT_EQ(count(built, ActivityRole::Work), static_cast<std::int64_t>(plan.tasks.size()));
}

TEST(Build, the_host_issues_every_launch_of_its_rank_in_order) {
  const Plan plan = plan_of("ag_gemm", {"m=512", "n=512", "k=512"}, "tp=4", "ring");
  const BuiltWorkload built =
      build_workload(plan, plain_machine(), {.launch = Launch::Host, .ideal = {}, .delay = {}});
  std::int64_t launched = 0;
  for (const Task& task : plan.tasks) {
    launched += plan.queues[task.queue.index()].kind == QueueKind::Host ? 0 : 1;
  }
  EXPECT_EQ(count(built, ActivityRole::Issue), launched);
  for (std::size_t i = 0; i < built.of.size(); ++i) {
    if (built.of[i].role != ActivityRole::Issue) continue;
    EXPECT_EQ(built.workload.activities[i].start, us(3));
  }
}

TEST(Build, tasks_of_one_kernel_are_launched_once_and_stay) {
  const Plan plan = plan_of("ag_gemm", {"m=512", "n=512", "k=512"}, "tp=4", "push");
  const BuiltWorkload built = build_workload(plan, launched_by_h200(plan), plain_machine(), {});
  std::set<std::pair<std::int32_t, std::int32_t>> seen;
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    const Task& task = plan.tasks[i];
    if (task.kind != TaskKind::Compute) continue;
    const bool first = seen.emplace(task.queue.value, task.kernel).second;
    EXPECT_EQ(work_of(built, i).start, first ? us(2 + 7) : us(0)) << "behind the others' rows";
    EXPECT_EQ(work_of(built, i).resident, !first);
  }
  EXPECT_EQ(seen.size(), 4U) << "a kernel per rank";
}

launch::LaunchPlan in_tiles_of(launch::LaunchPlan launches, const std::string& variant) {
  for (launch::Launch& launch : launches.launches) {
    for (launch::Kernel& kernel : launch.kernels) kernel.variant = variant;
  }
  return launches;
}

// The tasks of a kernel together take the time of the whole kernel, however it is cut.
TEST(Build, tasks_of_one_kernel_share_its_time) {
  const Machine machine = plain_machine(10);
  const std::vector<std::string> sizes = {"m=4096", "n=4096", "k=4096"};
  const auto sum = [&](const Plan& plan) {
    const launch::LaunchPlan launches = in_tiles_of(launched_on_all(plan), "tile 128x128 stages 6");
    const BuiltWorkload built = build_workload(plan, launches, machine, {});
    double seconds = 0;
    for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
      if (plan.tasks[i].kind == TaskKind::Compute) seconds += work_of(built, i).work.seconds();
    }
    return seconds;
  };
  const double whole = sum(plan_of("ag_gemm", sizes, "tp=4", "bulk"));
  EXPECT_NEAR(sum(plan_of("ag_gemm", sizes, "tp=4", "push")), whole, 0.001 * whole);
}

// Four SMs, and one tile of K = 1024 for each rank's 128 rows by 256 columns.
class HeldTiles : public testing::Test {
 protected:
  HeldTiles() {
    machine_.rates.front().tile_rows = 128;
    machine_.rates.front().tile_columns = 256;
    machine_.processor.sms = 4;
  }

  BuiltWorkload build(const std::string& variant) {
    return build_workload(plan_, in_tiles_of(launched_on_all(plan_), variant), machine_, {});
  }

  // Each tail belongs to a rank's last GEMM, has its waits, and takes `seconds`.
  void expect_tails(const BuiltWorkload& built, double seconds) {
    int tails = 0;
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      if (built.work_of_task[i] == built.begin_of_task[i]) continue;
      ++tails;
      EXPECT_EQ(plan_.tasks[i].kind, TaskKind::Compute);
      const auto tail = static_cast<std::size_t>(built.work_of_task[i] - 1);
      const Activity& held = built.workload.activities[tail];
      EXPECT_EQ(held.queue, kNoQueue);
      EXPECT_NEAR(held.work.seconds(), seconds, 1e-3 * seconds);
      const auto waits_of = [&](std::int32_t activity) {
        return std::ranges::count_if(built.workload.dependencies, [&](const Dependency& edge) {
          return edge.after == activity && edge.kind == WaitKind::Signal;
        });
      };
      EXPECT_EQ(waits_of(static_cast<std::int32_t>(tail)), waits_of(built.first_of_task[i]));
      EXPECT_GT(waits_of(static_cast<std::int32_t>(tail)), 0);
    }
    EXPECT_EQ(tails, 4) << "one for each rank";
  }

  // Of a kernel in which each of the four SMs has one ticket.
  static double seconds_of(const Tiling& tiling) {
    Tickets tickets(tiling, 4);
    tickets.add(1, 512, 256);
    constexpr double kClock = 0.92 * 10e12 / (4096 * 4);
    return tickets.clocks(1024 / kGemmStage) / kClock - us(2).seconds();
  }

  static constexpr double kFlops = 2.0 * 512 * 256 * 1024;
  static constexpr double kSeconds = kFlops / 10e12;  // of all four tiles, one per SM
  static constexpr GemmTile kTile = {.rows = 128, .columns = 256};
  Plan plan_ = plan_of("ag_gemm", {"m=512", "n=1024", "k=1024"}, "tp=4", "push");
  Machine machine_ = plain_machine(10);
};

// Three SMs hold the tiles of other panels, so no SM is free to help with the last tile.
TEST_F(HeldTiles, a_tile_takes_what_all_of_a_wave_take) {
  expect_tails(build("tile 128x256 stages 4"), seconds_of({.tile = kTile}));
}

TEST_F(HeldTiles, parts_of_tiles_take_parts_of_that) {
  const double all = seconds_of({.tile = kTile, .parts = 4, .whole = 0});
  expect_tails(build("tile 128x256 stages 4 cut 4 behind tile 0"), all / 4);
}

// In a kernel without tiles, the last task may use all four SMs by splitting its depth, which loses
// half of the gain.
TEST_F(HeldTiles, others_take_no_less_than_their_last_task_by_itself) {
  expect_tails(build("streams"), std::sqrt(0.5) * kSeconds);
}

// 512 tiles: five rounds of 120 blocks, or one of these and three of all 132. Blocks that copy end
// their copies before they take a tile.
TEST(Build, a_kernel_waits_for_blocks_that_have_copied) {
  const auto seconds_of = [](const Plan& plan, const std::string& variant) {
    const launch::LaunchPlan launches = in_tiles_of(launched_by_h200(plan), variant);
    const BuiltWorkload built = build_workload(plan, launches, h200(), {});
    double seconds = 0;
    for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
      const Task& task = plan.tasks[i];
      const bool is_first = plan.queues[task.queue.index()].rank == RankId(0);
      if (task.kind == TaskKind::Compute && is_first) seconds += work_of(built, i).work.seconds();
    }
    return seconds;
  };
  const std::string alone = "tile 128x128 stages 6";
  const std::string joined = alone + " joined at ticket 120";
  const Plan few = plan_of("ag_gemm", {"m=1024", "n=16384", "k=4096"}, "tp=2", "fused");
  EXPECT_LT(seconds_of(few, joined), 0.9 * seconds_of(few, alone)) << "4 MB are copied";
  const Plan many = plan_of("ag_gemm", {"m=4096", "n=4096", "k=4096"}, "tp=2", "fused");
  EXPECT_GT(seconds_of(many, joined), seconds_of(many, alone)) << "16 MB are copied";
}

// A fused store begins at the end of the wave that computes its tile, not when its share of the
// work is done.
TEST(Build, fused_stores_begin_once_whole_tiles_are_made) {
  const Plan plan = plan_of("gemm_rs", {"m=512", "n=256", "k=4096"}, "tp=4", "push");
  Machine machine = plain_machine(10);
  const launch::LaunchPlan launches = in_tiles_of(launched_on_all(plan), "tile 128x256 stages 4");
  // One wave: all panels are complete at its end, however many there are.
  const BuiltRun run = run_plan(plan, launches, machine, {});
  const auto span_of = [&](std::int32_t activity) {
    return run.engine.spans[static_cast<std::size_t>(activity)];
  };
  Picoseconds end;
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    if (plan.tasks[i].kind == TaskKind::Compute)
      end = std::max(end, span_of(run.built.work_of_task[i]).end);
  }
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    if (plan.tasks[i].kind != TaskKind::Copy) continue;
    EXPECT_NEAR(span_of(run.built.work_of_task[i]).ready.seconds(), end.seconds(), 1e-9);
  }
}

// Copy engines cannot convert, so a kernel on all SMs rounds. Pushed sums cross rounded and arrive
// later; pulled sums cross in the type of their slot.
TEST(Build, what_changes_type_on_its_way_is_moved_by_a_kernel) {
  const std::vector<std::string> sizes = {"m=1024", "n=1024", "k=1024"};
  const double rounded = 1024.0 * 1024 * 2 / 4;
  Machine machine = plain_machine();
  const auto copy_of = [&](const char* schedule, Picoseconds start) {
    const Plan plan = plan_of("gemm_rs", sizes, "tp=4", schedule);
    const BuiltWorkload built = build_workload(plan, machine, {});
    const Activity copy = work_of(built, first_task(plan, TaskKind::Copy));
    EXPECT_EQ(copy.start, start) << "of `sm`, not of `ce`";
    const auto sms = std::ranges::find_if(copy.uses, [&](const Use& use) {
      return built.map.list[static_cast<std::size_t>(use.resource)].kind == ResourceKind::Sm;
    });
    EXPECT_NE(sms, copy.uses.end());
    if (sms != copy.uses.end()) {
      EXPECT_EQ(sms->rate, 4);
    }
    return copy.work.seconds();
  };
  EXPECT_NEAR(copy_of("ring", us(7)), rounded / 50e9, 1e-11);
  EXPECT_NEAR(copy_of("fetch", us(2)), 2 * rounded / 50e9, 1e-11);
  for (TransportRate& rate : machine.transports) rate.converting = 20e9;
  EXPECT_NEAR(copy_of("ring", us(7)), rounded / 50e9, 1e-11) << "what is read is its own";
  EXPECT_NEAR(copy_of("fetch", us(2)), 2 * rounded / 20e9, 1e-11);
}

TEST(Build, sums_that_takers_round_cross_as_they_are_held_and_are_added_in_passes) {
  const Plan plan = plan_of("gemm_rs", {"m=1024", "n=1024", "k=1024"}, "tp=4", "bulk");
  Machine machine = plain_machine();
  const auto sum = [&] {
    const BuiltWorkload built = build_workload(plan, machine, {});
    return std::pair(work_of(built, first_task(plan, TaskKind::Collective)).work.seconds(),
                     built.level_bytes.front());
  };
  const auto [library, told] = sum();
  for (TransportRate& rate : machine.transports) rate.unrounded = 1;
  const auto [pulled, crossed] = sum();
  EXPECT_NEAR(crossed, 2 * told, 1);
  const double part = 1024.0 * 1024 / 4;  // elements
  const double crossing = 3 * 2 * part / 100e9;
  const double passes = 8 * part + 3 * (2 * part + 2 * part + 8 * part);
  EXPECT_NEAR(pulled - library, crossing + passes / 1000e9, 1e-11);
}

// An operand crosses once for each tile that needs it. On a bus all ranks share one memory.
TEST(Build, what_is_read_in_place_crosses_for_every_tile) {
  const Plan plan = plan_of("ag_gemm", {"m=1024", "n=1024", "k=1024"}, "tp=4", "pull");
  Machine machine = plain_machine();
  machine.rates.front().tile_columns = 128;  // two in a rank's 256 columns
  const double others = 3.0 * 1024 * 1024 * 2;
  EXPECT_NEAR(build_workload(plan, machine, {}).level_bytes.front(), 2 * others, 1);
  machine.levels.front().kind = LevelKind::Bus;
  EXPECT_NEAR(build_workload(plan, machine, {}).level_bytes.front(), others, 1);
}

// The engine also copies the flag behind the data. There is no second copy if no other rank waits,
// or on a CPU core, which writes the signal itself.
TEST(Build, an_engine_is_started_once_more_for_a_flag) {
  const std::vector<std::string> sizes = {"m=512", "n=512", "k=512"};
  Machine machine = plain_machine();
  const auto start_of = [&](const char* schedule) {
    const Plan plan = plan_of("ag_gemm", sizes, "tp=4", schedule);
    const BuiltWorkload built = build_workload(plan, machine, {});
    Picoseconds most;
    for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
      if (plan.tasks[i].kind == TaskKind::Copy) most = std::max(most, work_of(built, i).start);
    }
    return most;
  };
  EXPECT_EQ(start_of("push"), us(8));
  EXPECT_EQ(start_of("fetch"), us(4)) << "who pulls waits by an event";
  machine.processor.sms = 1;
  EXPECT_EQ(start_of("push"), us(4));
}

TEST(Build, an_execution_begins_when_it_is_started) {
  const Plan plan = plan_of("ag_gemm", {"m=512", "n=512", "k=512"}, "tp=4", "push");
  Machine machine = plain_machine();
  const double before = run_plan(plan, machine, {}).engine.total.microseconds();
  machine.processor.execution_start = us(5);
  EXPECT_NEAR(run_plan(plan, machine, {}).engine.total.microseconds(), before + 5, 1e-6);
}

TEST(Build, members_of_a_collective_start_together) {
  const Plan plan = plan_of("ag_gemm", {"m=512", "n=512", "k=512"}, "tp=4", "bulk");
  const BuiltRun run = run_plan(
      plan, plain_machine(),
      {.launch = Launch::Graph, .ideal = {}, .delay = SimulateOptions::Delay{RankId(1), us(100)}});
  EXPECT_EQ(count(run.built, ActivityRole::Arrive), 4);
  std::set<Picoseconds> begins;
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    if (plan.tasks[i].kind != TaskKind::Collective) continue;
    begins.insert(run.engine.spans[static_cast<std::size_t>(run.built.work_of_task[i])].begin);
  }
  EXPECT_EQ(begins.size(), 1U);
  EXPECT_GE(*begins.begin(), us(100));
}

// Puts of one proxy in a row, and the waits of their signals.
class Puts : public testing::Test {
 protected:
  Plan plan = [] {
    Plan made = plan_of("ag_gemm", {"m=16384", "n=512", "k=4096"}, "node=4,gpu=1", "push");
    for (Queue& queue : made.queues) {
      if (queue.kind == QueueKind::Ce) queue.kind = QueueKind::Proxy;
    }
    for (Task& task : made.tasks) {
      if (task.kind == TaskKind::Copy) task.via = Via::Proxy;
    }
    return made;
  }();
  // Single processors on a switch that only proxies use.
  Machine machine = [] {
    Machine made = paired_machine(1e6);
    made.levels[0].size = 1;
    made.processor.memory_bandwidth = 1e18;
    return made;
  }();

  // Puts that leave their rank. The other copies are in memory and are not posted.
  [[nodiscard]] std::int64_t puts() const {
    return std::ranges::count_if(
        plan.tasks, [&](const Task& task) { return is_put(plan, task) && task.bytes > 0; });
  }

  void set_fences(Fence fence) {
    for (Sync& sync : plan.syncs) {
      const bool put = is_put(plan, plan.tasks[sync.from.index()]);
      if (put && sync.kind != SyncKind::Event) sync.fence = fence;
    }
  }
};

TEST_F(Puts, are_posted_one_by_one_and_travel_beside_each_other) {
  set_fences(Fence::NicOrdered);
  const BuiltWorkload built = build_workload(plan, machine, {});
  EXPECT_EQ(count(built, ActivityRole::Fence), 0);
  std::int64_t posted = 0;
  for (std::size_t i = 0; i < built.of.size(); ++i) {
    if (built.of[i].role != ActivityRole::Post) continue;
    posted += built.workload.activities[i].work == us(1) ? 1 : 0;
  }
  EXPECT_EQ(posted, puts());
  EXPECT_EQ(work_of(built, first_task(plan, TaskKind::Copy)).queue, kNoQueue);
}

TEST_F(Puts, cost_what_their_fences_do) {
  std::map<Fence, Picoseconds> times;
  std::map<Fence, std::int64_t> fences;
  for (const Fence fence : {Fence::PerPut, Fence::PerDestination, Fence::NicOrdered, Fence::Batched,
                            Fence::OneQuiet, Fence::Immediate}) {
    set_fences(fence);
    const BuiltRun run = run_plan(plan, machine, {});
    times[fence] = run.engine.total;
    fences[fence] = count(run.built, ActivityRole::Fence);
  }
  EXPECT_EQ(fences[Fence::PerPut], puts());
  EXPECT_LT(fences[Fence::PerDestination], puts());
  EXPECT_GE(fences[Fence::PerDestination], 4);
  EXPECT_EQ(fences[Fence::NicOrdered], 0);
  EXPECT_LT(times[Fence::NicOrdered], times[Fence::PerDestination]);
  EXPECT_LT(times[Fence::PerDestination], times[Fence::PerPut]);
  EXPECT_LT(fences[Fence::OneQuiet], fences[Fence::PerDestination]);
  EXPECT_EQ(fences[Fence::Batched], 0);
  EXPECT_EQ(fences[Fence::Immediate], 0);
  EXPECT_EQ(times[Fence::Batched],
            times[Fence::NicOrdered]);  // signals are free, and so is their order
  EXPECT_EQ(times[Fence::Immediate], times[Fence::NicOrdered]);
}

// The machine's costs of signals, NIC order and counting appear only where a fence uses them.
TEST_F(Puts, pay_for_signals_for_their_order_and_for_counting) {
  machine.levels[1].proxy_word = us(1);
  machine.levels[1].proxy_count = us(1);
  machine.levels[1].nic_drain = us(50);
  machine.completions.push_back({.level = "rail", .groups = 4, .time = us(30), .from = {}});
  std::map<Fence, Picoseconds> times;
  std::map<ActivityRole, std::int64_t> roles;
  for (const Fence fence : {Fence::PerPut, Fence::NicOrdered, Fence::Immediate, Fence::Batched}) {
    set_fences(fence);
    const BuiltRun run = run_plan(plan, machine, {});
    times[fence] = run.engine.total;
    for (const ActivityRole role : {ActivityRole::Signal, ActivityRole::Count}) {
      roles[role] += count(run.built, role);
    }
  }
  EXPECT_EQ(roles[ActivityRole::Signal], 3 * puts());
  EXPECT_EQ(roles[ActivityRole::Count], puts());
  EXPECT_LT(times[Fence::Immediate], times[Fence::Batched]);
  EXPECT_LE(times[Fence::Batched], times[Fence::NicOrdered]);
}

// The bytes that cross between nodes: in total, and those of the GPU that sends most.
struct Crossed {
  double all = 0;
  double most = 0;
};
Crossed crossed_of(const std::string& schedule) {
  const Plan plan = plan_of("attention", {"seq=4096", "heads=16"}, "node=2,gpu=8", schedule);
  std::map<std::int32_t, double> sent;
  Crossed crossed;
  for (const Task& task : plan.tasks) {
    if (task.kind != TaskKind::Copy || task.bytes == 0) continue;
    const RankId from = plan.allocs[task.reads.front().alloc.index()].rank;
    const RankId to = plan.allocs[task.writes.front().alloc.index()].rank;
    if (from.value / 8 == to.value / 8) continue;
    crossed.all += static_cast<double>(task.bytes);
    crossed.most = std::max(crossed.most, sent[from.value] += static_cast<double>(task.bytes));
  }
  return crossed;
}

// In a flat ring, one GPU per node forwards all 15 other blocks. In a double ring, every GPU sends
// its own block once.
TEST(Build, a_double_ring_crosses_nodes_with_a_fifteenth_of_what_a_ring_does) {
  const Crossed flat = crossed_of("ring");
  const Crossed nested = crossed_of("double_ring");
  EXPECT_DOUBLE_EQ(nested.most * 15, flat.most);
  EXPECT_DOUBLE_EQ(nested.all * 30, flat.all * 16);
}

TEST(Build, without_launches_nothing_starts_late) {
  const Plan plan = plan_of("attention", {"seq=1024", "heads=4"}, "cp=4", "ring");
  SimulateOptions options{.launch = Launch::Host, .ideal = {.no_launch = true}, .delay = {}};
  const BuiltWorkload built = build_workload(plan, plain_machine(), options);
  EXPECT_EQ(count(built, ActivityRole::Issue), 0);
  for (const Activity& activity : built.workload.activities) EXPECT_EQ(activity.start, us(0));
  for (const Dependency& edge : built.workload.dependencies) EXPECT_EQ(edge.delay, us(0));
}

TEST(Build, without_round_trips_only_homes_are_read_and_written) {
  const Plan plan = plan_of("gemm_rs", {"m=1024", "n=1024", "k=1024"}, "tp=4", "ring");
  SimulateOptions options{.launch = Launch::Graph, .ideal = {.no_round_trips = true}, .delay = {}};
  const BuiltWorkload built = build_workload(plan, plain_machine(), options);
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    if (plan.tasks[i].kind == TaskKind::Fold) {
      EXPECT_EQ(work_of(built, i).work, us(0));
    }
    if (plan.tasks[i].kind == TaskKind::Finalise) {
      const double home = 1024.0 * 1024 * 2 / 4;
      EXPECT_NEAR(work_of(built, i).work.seconds(), home / 1000e9, 1e-12);
    }
  }
}

TEST(Tiles, parts_add_up_and_keep_their_order) {
  const Plan plan = plan_of("attention", {"seq=1024", "heads=4"}, "cp=4", "ulysses");
  const BuiltWorkload whole = build_workload(plan, plain_machine(), {});
  const BuiltWorkload parts = in_tiles(whole, 7);
  ASSERT_EQ(parts.work_of_task.size(), plan.tasks.size());
  Picoseconds before;
  Picoseconds after;
  for (const Activity& activity : whole.workload.activities) {
    before += activity.start + activity.work;
  }
  for (const Activity& activity : parts.workload.activities) {
    after += activity.start + activity.work;
  }
  EXPECT_EQ(before, after);
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    EXPECT_LE(parts.first_of_task[i], parts.begin_of_task[i]);
    EXPECT_LE(parts.begin_of_task[i], parts.work_of_task[i]);
    EXPECT_EQ(parts.of[static_cast<std::size_t>(parts.work_of_task[i])].task.index(), i);
  }
}

// A chain of two: the second begins when the first part of the first has ended.
TEST(Tiles, a_consumer_begins_when_the_first_part_is_there) {
  BuiltWorkload chain;
  chain.workload.queues = 2;
  chain.workload.activities = {{.queue = 0, .start = {}, .work = us(100), .uses = {}},
                               {.queue = 1, .start = {}, .work = us(100), .uses = {}}};
  chain.workload.dependencies = {{0, 1, WaitKind::Event, {}}};
  chain.of = {{TaskId(0), ActivityRole::Work}, {TaskId(1), ActivityRole::Work}};
  chain.first_of_task = chain.begin_of_task = chain.work_of_task = {0, 1};
  EXPECT_EQ(run_workload(chain.workload).total, us(200));
  EXPECT_EQ(run_workload(in_tiles(chain, 10).workload).total, us(110));
  EXPECT_EQ(run_workload(in_tiles(chain, 100).workload).total, us(101));
}

}  // namespace build_test
}  // namespace harpe
