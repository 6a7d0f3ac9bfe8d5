#include "sim/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "sim/run.h"
#include "tests/unit/sim/plans.h"

namespace harpe {
namespace simulate_test {

double time_of(const Plan& plan, const Machine& machine, const SimulateOptions& options = {}) {
  return simulate(plan, machine, options)->total.microseconds();
}

std::vector<std::string> sizes(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {"m=" + std::to_string(m), "n=" + std::to_string(n), "k=" + std::to_string(k)};
}

// Only links and launches take time.
Machine links_alone() {
  Machine machine = plain_machine(1e6);
  machine.processor.memory_bandwidth = 1e18;
  return machine;
}

// Three ranks on a ring of four: the way from the last to the first rank passes a processor without
// a rank and takes two links.
TEST(Simulate, ways_may_lead_through_processors_without_ranks) {
  Machine ring = links_alone();
  ring.levels.front().kind = LevelKind::Ring;
  ring.levels.front().size = 4;
  const Plan plan = plan_of("ag_gemm", sizes(3072, 1024, 16384), "tp=3", "ring");
  ASSERT_TRUE(check_fits(plan, ring).ok());
  EXPECT_GE(time_of(plan, ring), time_of(plan, links_alone()));
}

// In a ring, each rank receives all other parts one after another; each copy begins when the
// preceding one is known to have arrived.
TEST(Simulate, a_ring_of_copies_takes_its_formula) {
  for (const int ranks : {4, 8, 16}) {
    const Plan plan =
        plan_of("ag_gemm", sizes(16384, 1024, 16384), "tp=" + std::to_string(ranks), "ring");
    const double bytes = 16384.0 * 16384 * 2 / ranks;
    const double copies = (ranks - 1) * (4 + 4 + 1 + bytes / 100e9 * 1e6);
    EXPECT_NEAR(time_of(plan, links_alone()), copies, 0.01 * copies) << ranks;
  }
}

// Every rank pulls from all other ranks, from a different one at any time: no port is shared.
TEST(Simulate, pulling_from_all_takes_its_formula) {
  for (const int ranks : {4, 8, 16}) {
    const Plan plan =
        plan_of("ag_gemm", sizes(16384, 1024, 16384), "tp=" + std::to_string(ranks), "fetch");
    const double bytes = 16384.0 * 16384 * 2 / ranks;
    const double copies = (ranks - 1) * (4 + bytes / 100e9 * 1e6);
    EXPECT_NEAR(time_of(plan, links_alone()), copies, 0.01 * copies) << ranks;
  }
}

TEST(Simulate, a_library_gather_before_a_product_takes_its_formula) {
  const Plan plan = plan_of("ag_gemm", sizes(16384, 8192, 8192), "tp=8", "bulk");
  Machine machine = plain_machine(100);
  machine.processor.memory_bandwidth = 1e18;
  const double part = 16384.0 * 8192 * 2 / 8;
  const double gather =
      2 + collective_time(machine, CollectiveKind::AllGather, 0, 8, part).microseconds();
  const double product = 2 + 2.0 * 16384 * 8192 * 8192 / 8 / 100e12 * 1e6;
  EXPECT_NEAR(time_of(plan, machine), gather + product, 0.01 * (gather + product));
}

TEST(Simulate, a_library_exchange_takes_its_formula) {
  const std::vector<std::string> parameters = {"seq=65536", "heads=16", "head_dim=128"};
  const Plan plan = plan_of("attention", parameters, "cp=8", "ulysses");
  const Machine machine = links_alone();
  const double tensor = 65536.0 * 16 * 128 * 2 / 8;  // one rank's q, k, v or o
  const double exchanges =
      3 * (2 + collective_time(machine, CollectiveKind::AllToAll, 0, 8, tensor).microseconds());
  const Simulation simulation = *simulate(plan, machine);
  const double packing = 8 * 2 + 1;  // of q: a launch per destination, and an event
  Picoseconds last;                  // of q, k and v, one after the other
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    if (plan.tasks[i].kind == TaskKind::Collective) {
      last = std::max(last, simulation.tasks[i].end);
    }
  }
  EXPECT_NEAR(last.microseconds(), packing + exchanges, 0.001 * exchanges);
}

// GEMMs take longer than copies and hide nearly all of them.
TEST(Simulate, what_hides_behind_compute_costs_nothing) {
  const Plan plan = plan_of("ag_gemm", sizes(16384, 16384, 8192), "tp=8", "ring");
  const double step = 2.0 * 16384 * 16384 * 8192 / 64 / 10e12 * 1e6;
  const Simulation simulation = *simulate(plan, plain_machine(10));
  EXPECT_NEAR(simulation.total.microseconds(), 8 * (step + 2), 0.01 * 8 * step);
  EXPECT_LT(simulation.exposed_communication.microseconds(), 0.001 * 8 * step);
}

constexpr double kAnomaly = 1.15;  // docs/simulator.md

class EverySchedule : public testing::Test {
 protected:
  std::vector<Plan> plans = {
      plan_of("attention", {"seq=8192", "heads=8", "head_dim=64"}, "cp=4", "ring"),
      plan_of("attention", {"seq=8192", "heads=8", "head_dim=64", "causal=true"}, "cp=4",
              "zigzag_ring"),
      plan_of("attention", {"seq=8192", "heads=8", "head_dim=64"}, "cp=4", "ulysses"),
      plan_of("attention", {"seq=8192", "heads=8", "head_dim=64"}, "a=2,b=2", "double_ring"),
      plan_of("attention", {"seq=8192", "heads=8", "head_dim=64"}, "cp=4", "allgather"),
      plan_of("ag_gemm", sizes(4096, 4096, 4096), "tp=4", "ring"),
      plan_of("ag_gemm", sizes(4096, 4096, 4096), "tp=4", "pull"),
      plan_of("ag_gemm", sizes(4096, 4096, 4096), "tp=4", "push"),
      plan_of("gemm_rs", sizes(4096, 4096, 4096), "tp=4", "ring"),
      plan_of("gemm_ar", sizes(4096, 4096, 4096), "tp=4", "bulk"),
      plan_of("decode", {"batch=16", "kv=65536"}, "tp=4", "fetch"),
      plan_of("moe", {"tokens=4096"}, "ep=4", "push"),
  };
};

TEST_F(EverySchedule, the_critical_path_covers_the_time_without_gaps) {
  for (const Plan& plan : plans) {
    for (const Launch launch : {Launch::Graph, Launch::Host}) {
      const Simulation simulation =
          *simulate(plan, plain_machine(), {.launch = launch, .ideal = {}, .delay = {}});
      ASSERT_FALSE(simulation.critical_path.empty()) << plan.form.name;
      Picoseconds at;
      for (const Segment& segment : simulation.critical_path) {
        ASSERT_EQ(segment.begin, at) << plan.form.name << ": " << segment.what;
        ASSERT_GT(segment.end, segment.begin);
        at = segment.end;
      }
      ASSERT_EQ(at, simulation.total) << plan.form.name;
    }
  }
}

TEST_F(EverySchedule, time_is_between_the_bounds) {
  for (const Plan& plan : plans) {
    const Machine machine = plain_machine();
    const BuiltRun run = run_plan(plan, machine, {});
    Picoseconds serial;
    for (const Activity& activity : run.built.workload.activities) {
      serial += activity.start + activity.work;
    }
    for (const Dependency& edge : run.built.workload.dependencies) serial += edge.delay;
    EXPECT_LE(run.engine.total, serial) << plan.form.name;
    for (std::size_t i = 0; i < run.engine.units.size(); ++i) {
      EXPECT_GE(run.engine.total.seconds() * (1 + 1e-9),
                run.engine.units[i] / run.built.workload.resources[i].capacity)
          << plan.form.name;
    }
  }
}

TEST_F(EverySchedule, every_task_runs_in_its_queue_s_order_after_what_it_waits_for) {
  for (const Plan& plan : plans) {
    const Simulation simulation = *simulate(plan, plain_machine());
    std::vector<Picoseconds> free(plan.queues.size());
    for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
      ASSERT_GE(simulation.tasks[i].ready, free[plan.tasks[i].queue.index()]) << plan.form.name;
      free[plan.tasks[i].queue.index()] = simulation.tasks[i].end;
    }
    for (const Sync& sync : plan.syncs) {
      ASSERT_GE(simulation.tasks[sync.to.index()].ready, simulation.tasks[sync.from.index()].end);
    }
    for (const Barrier& barrier : plan.barriers) {
      for (const TaskId from : barrier.from) {
        for (const TaskId to : barrier.to) {
          ASSERT_GE(simulation.tasks[to.index()].ready, simulation.tasks[from.index()].end);
        }
      }
    }
  }
}

TEST_F(EverySchedule, two_simulations_are_equal) {
  for (const Plan& plan : plans) {
    const Simulation first = *simulate(plan, plain_machine());
    const Simulation second = *simulate(plan, plain_machine());
    EXPECT_EQ(first.tasks, second.tasks);
    EXPECT_EQ(first.critical_path, second.critical_path);
  }
}

TEST_F(EverySchedule, folding_changes_no_picosecond) {
  for (const Plan& plan : plans) {
    for (const bool tiles : {false, true}) {
      SimulateOptions options;
      options.ideal.tile_edges = tiles;
      const BuiltRun folded = run_plan(plan, plain_machine(), options);
      options.fold = Fold::Off;
      const BuiltRun whole = run_plan(plan, plain_machine(), options);
      ASSERT_EQ(folded.engine.total, whole.engine.total) << plan.form.name;
      for (std::size_t i = 0; i < whole.engine.spans.size(); ++i) {
        ASSERT_EQ(folded.engine.spans[i].begin, whole.engine.spans[i].begin) << plan.form.name;
        ASSERT_EQ(folded.engine.spans[i].end, whole.engine.spans[i].end) << plan.form.name;
      }
    }
  }
}

TEST(Simulate, a_ring_s_ranks_are_few) {
  for (const int ranks : {4, 8, 12, 16}) {
    const Plan plan =
        plan_of("ag_gemm", sizes(4608, 4608, 4608), "tp=" + std::to_string(ranks), "ring");
    SimulateOptions options;
    const Simulation folded = *simulate(plan, plain_machine(), options);
    options.fold = Fold::Off;
    EXPECT_EQ(simulate(plan, plain_machine(), options)->tasks.back().end, folded.tasks.back().end);
    if (ranks >= 8) {
      EXPECT_LE(folded.ranks_simulated, 2) << ranks;
    }
  }
}

// Faster links, memory or launches are never slower here, beyond the anomaly bound.
TEST_F(EverySchedule, a_better_machine_is_not_slower) {
  for (const Plan& plan : plans) {
    const double before = time_of(plan, plain_machine());
    Machine links = plain_machine();
    for (MachineLevel& level : links.levels) level.bandwidth *= 2;
    for (TransportRate& rate : links.transports) rate.bandwidth *= 2;
    EXPECT_LE(time_of(plan, links), before * kAnomaly) << plan.form.name;
    Machine memory = plain_machine();
    memory.processor.memory_bandwidth *= 2;
    EXPECT_LE(time_of(plan, memory), before * kAnomaly) << plan.form.name;
    Machine launches = plain_machine();
    launches.processor.kernel_start = {};
    EXPECT_LE(time_of(plan, launches), before * kAnomaly) << plan.form.name;
    EXPECT_LE(time_of(plan, plain_machine(200)), before * kAnomaly) << plan.form.name;
  }
}

TEST_F(EverySchedule, launches_by_the_host_are_not_faster) {
  for (const Plan& plan : plans) {
    const SimulateOptions by_host{.launch = Launch::Host, .ideal = {}, .delay = {}};
    EXPECT_GE(time_of(plan, plain_machine(), by_host) * kAnomaly, time_of(plan, plain_machine()))
        << plan.form.name;
  }
}

TEST_F(EverySchedule, memory_in_use_fits_the_arena) {
  for (const Plan& plan : plans) {
    const Simulation simulation = *simulate(plan, plain_machine());
    ASSERT_FALSE(simulation.memory.empty());
    std::int64_t homes = 0;
    for (const Alloc& alloc : plan.allocs) {
      if (alloc.rank == RankId(0) && alloc.level == Level::Home) homes += alloc.bytes;
    }
    std::int64_t most = 0;
    for (const MemoryPoint& point : simulation.memory) most = std::max(most, point.bytes);
    EXPECT_LE(most, simulation.peak_bytes) << plan.form.name;
    EXPECT_GE(most, homes) << plan.form.name;
    EXPECT_EQ(simulation.memory.back().bytes, homes) << plan.form.name;
    EXPECT_EQ(simulation.peak_bytes, arena_bytes(plan));
  }
}

TEST(Simulate, bytes_cross_the_level_their_ranks_meet_at) {
  const Plan plan = plan_of("ag_gemm", sizes(1024, 1024, 1024), "tp=4", "fetch");
  const std::int64_t part = 1024 * 1024 * 2 / 4;
  EXPECT_EQ(simulate(plan, plain_machine())->bytes_per_level,
            (std::vector<std::int64_t>{4 * 3 * part}));
}

TEST(Simulate, a_late_rank_delays_all_that_wait_for_it) {
  const Plan plan = plan_of("ag_gemm", sizes(4096, 4096, 4096), "tp=4", "bulk");
  SimulateOptions options;
  const Picoseconds before = simulate(plan, plain_machine(), options)->total;
  options.delay = SimulateOptions::Delay{RankId(2), from_microseconds(500)};
  const Picoseconds after = simulate(plan, plain_machine(), options)->total;
  EXPECT_EQ(after - before, from_microseconds(500));
}

TEST(Simulate, utilisation_is_of_capacity_and_time) {
  const Plan plan = plan_of("ag_gemm", sizes(8192, 8192, 8192), "tp=4", "ring");
  const Simulation simulation = *simulate(plan, plain_machine(1));
  ASSERT_FALSE(simulation.shares.empty());
  EXPECT_EQ(simulation.shares.front().resource.kind, ResourceKind::Sm);
  EXPECT_EQ(simulation.shares.front().name, "rank 0 SMs");
  EXPECT_GT(simulation.shares.front().utilisation, 0.99);
  for (const ResourceShare& share : simulation.shares) EXPECT_LE(share.utilisation, 1 + 1e-9);
}

std::string refusal(const Plan& plan, const Machine& machine) {
  const Checked<Ok> fits = check_fits(plan, machine);
  return fits.ok() ? "" : render(fits.error());
}

TEST(CheckFits, tells_what_does_not_fit) {
  const Plan plan = plan_of("ag_gemm", sizes(1024, 1024, 1024), "tp=4", "ring");
  EXPECT_EQ(refusal(plan, plain_machine()), "");
  Machine small = plain_machine();
  small.levels[0].size = 2;
  EXPECT_EQ(refusal(plan, small),
            "error[M117]: 4 ranks do not fit on machine `plain`: it has 2 processors; take a "
            "smaller mesh or a machine with more processors");
  EXPECT_EQ(
      refusal(plan, paired_machine()),
      "error[M118]: machine `plain` has no transport `ce` at level `rail`, which connects rank "
      "2 and rank 1; it has there: proxy, nccl; move it by one of these");
}

TEST(Simulate, the_total_alone_is_the_same_and_given_up_once_the_time_is_over) {
  const Plan plan = plan_of("ag_gemm", sizes(3072, 1024, 16384), "tp=3", "ring");
  const Machine machine = plain_machine();
  int asked = 0;
  const TimeLimit never{.end = std::nullopt, .interrupted = [&] { return ++asked < 0; }};
  const Checked<Picoseconds> whole = simulate_total(plan, machine, never);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(*whole, simulate(plan, machine)->total);
  EXPECT_GT(asked, 4);
  for (int left = 0, times = asked; left < times; ++left) {
    asked = 0;
    const TimeLimit soon{.end = std::nullopt, .interrupted = [&] { return ++asked > left; }};
    const Checked<Picoseconds> part = simulate_total(plan, machine, soon);
    ASSERT_FALSE(part.ok());
    EXPECT_EQ(part.error().code, DiagCode::I505);
  }
}

}  // namespace simulate_test
}  // namespace harpe
