#include "exec/cpu/signals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "exec/cpu/marking.h"
#include "plan/refs.h"
#include "tests/support/proxy_plan.h"
#include "tests/unit/exec/plans.h"
#include "tests/unit/exec/steps.h"

namespace harpe::cpu {
namespace signals_test {

using launch::SignalKind;
using processes::Partition;
using test::no_work;
using test::steps_of;

TaskId id_of(std::size_t index) { return TaskId(static_cast<std::int64_t>(index)); }

// Partitions with one rank per process and with two.
std::vector<Partition> partitions(const Plan& plan, int processes_per_host) {
  std::vector<Partition> all;
  for (const std::int64_t each : {1, 2}) {
    const auto processes = static_cast<int>(plan.mesh.ranks() / each);
    for (int process = 0; process < processes; ++process) {
      all.push_back({.process = process,
                     .processes = processes,
                     .processes_per_host = std::min(processes_per_host, processes),
                     .ranks_each = each});
    }
  }
  return all;
}

std::vector<Plan> plans() {
  return {test::exchange(4, 12, false), test::exchange(4, 12, true),
          test::gather_gemm(4, 8, 8, 8, "f32"), test::scatter_gemm(4, 8, 8, 8, "f32", false),
          test::by_proxy(test::scatter_gemm(4, 8, 8, 8, "f32", false), Fence::PerPut)};
}

std::vector<TaskId> tasks_of(const std::vector<Producer>& producers) {
  std::vector<TaskId> tasks;
  for (const Producer& producer : producers) tasks.push_back(producer.task);
  return tasks;
}

Partition alone(const Plan& plan) { return Partition::alone(plan.mesh.ranks()); }

// A flag with the kind and index of its signal and the tasks that raise it.
using Meaning =
    std::tuple<std::int32_t, std::optional<SignalKind>, std::int32_t, std::vector<TaskId>>;

TEST(ProcessSignals, raise_in_other_processes_the_flags_that_those_wait_for) {
  for (const Plan& plan : plans()) {
    for (const Partition& partition : partitions(plan, 2)) {
      const LaunchSteps steps = steps_of(plan);
      const ProcessSignals here = map_signals(plan, steps, partition);
      for (int other = 0; other < partition.processes; ++other) {
        if (other == partition.process) continue;
        Partition there = partition;
        there.process = other;
        std::set<Meaning> raised;
        for (const ProcessSignal& signal : here.signals) {
          for (const Outgoing& flag : signal.outgoing) {
            if (flag.process == other) {
              raised.emplace(flag.flag, signal.kind, signal.index, tasks_of(signal.producers));
            }
          }
        }
        std::set<Meaning> awaited;
        for (const ProcessSignal& signal : map_signals(plan, steps, there).signals) {
          if (signal.flag < 0) continue;
          EXPECT_GE(signal.flag, partition.processes);
          EXPECT_LT(signal.flag, here.most_flags);
          EXPECT_EQ(signal.arrivals, 1);
          if (partition.is_own(rank_of(plan, signal.producers.front().task))) {
            awaited.emplace(signal.flag, signal.kind, signal.index, tasks_of(signal.producers));
          }
        }
        EXPECT_EQ(raised, awaited);
      }
    }
  }
}

TEST(ProcessSignals, wait_for_what_the_launch_plan_waits_for) {
  for (const Plan& plan : plans()) {
    const LaunchSteps steps = steps_of(plan);
    for (const Partition& partition : partitions(plan, 1)) {
      const ProcessSignals signals = map_signals(plan, steps, partition);
      for (std::size_t queue = 0; queue < steps.queues.size(); ++queue) {
        for (std::size_t at = 0; at < steps.queues[queue].size(); ++at) {
          std::set<TaskId> expected;
          for (const std::int32_t wait : steps.queues[queue][at].waits) {
            const auto& from = steps.signals[static_cast<std::size_t>(wait)].from;
            if (partition.is_own(plan.queues[queue].rank))
              expected.insert(from.begin(), from.end());
          }
          std::set<TaskId> found;
          for (const std::int32_t wait : signals.queues[queue][at].waits) {
            const ProcessSignal& signal = signals.signals[static_cast<std::size_t>(wait)];
            for (const TaskId task : tasks_of(signal.producers)) found.insert(task);
            EXPECT_EQ(std::ranges::count(signal.waiters, static_cast<std::int32_t>(queue)), 1);
          }
          EXPECT_EQ(found, expected) << "step " << at << " of queue " << queue;
        }
      }
    }
  }
}

TEST(ProcessSignals, count_the_members_of_one_process) {
  const Plan plan = test::exchange(4, 12, true);
  const LaunchSteps steps = steps_of(plan);
  for (const std::int64_t each : {4, 2}) {
    const std::int64_t processes = 4 / each;
    const ProcessSignals signals = map_signals(plan, steps,
                                               {.process = 0,
                                                .processes = static_cast<int>(processes),
                                                .processes_per_host = 2,
                                                .ranks_each = each});
    std::int64_t members = 0;
    for (std::size_t queue = 0; queue < steps.queues.size(); ++queue) {
      for (std::size_t at = 0; at + 2 < steps.queues[queue].size(); ++at) {
        const TaskId task = steps.queues[queue][at].task;
        const bool is_first = steps.queues[queue][at].begins;
        if (!is_first || plan.tasks[task.index()].kind != TaskKind::Collective) continue;
        if (signals.queues[queue][at].raises.empty()) continue;  // a task of the other process
        for (const std::size_t stage : {at, at + 1}) {           // its arrival, then its pull
          ASSERT_EQ(signals.queues[queue][stage].raises.size(), 1U);
          const std::int32_t raised = signals.queues[queue][stage].raises.front().signal;
          const std::vector<std::int32_t>& waits = signals.queues[queue][stage + 1].waits;
          EXPECT_EQ(waits.size(), static_cast<std::size_t>(processes));
          EXPECT_EQ(std::ranges::count(waits, raised), 1);
          const ProcessSignal& signal = signals.signals[static_cast<std::size_t>(raised)];
          EXPECT_EQ(signal.arrivals, each);
          EXPECT_EQ(std::ssize(signal.outgoing), processes - 1);
        }
        ++members;
      }
    }
    EXPECT_EQ(members, each);
  }
}

// A put to another host carries its own signals, which the network raises there.
TEST(ProcessSignals, leave_flags_behind_a_far_put_to_the_network) {
  const Plan plan = test::by_proxy(test::scatter_gemm(2, 8, 8, 8, "f32", false), Fence::PerPut);
  for (const int processes_per_host : {1, 2}) {
    const bool is_far = processes_per_host == 1;
    const Partition partition = {
        .process = 0, .processes = 2, .processes_per_host = processes_per_host, .ranks_each = 1};
    int behind = 0;
    for (const ProcessSignal& signal : map_signals(plan, steps_of(plan), partition).signals) {
      const bool is_of_put = signal.kind == SignalKind::Sync &&
                             is_put(plan, plan.tasks[signal.producers.front().task.index()]);
      EXPECT_EQ(signal.is_behind_put, is_far && is_of_put);
      behind += signal.is_behind_put ? 1 : 0;
    }
    EXPECT_EQ(behind, is_far ? 2 : 0) << "a put from each rank";
  }
}

// The ranks do not access each other's homes. So a rank begins its next execution only after the
// other ranks' previous one has ended; the first execution begins at once.
TEST(ProcessSignals, make_an_entry_wait_for_the_execution_before) {
  const Plan plan = test::scatter_gemm(2, 8, 8, 8, "f32", false);
  Marking marking(plan, steps_of(plan), no_work(plan), std::nullopt, alone(plan));
  const Marking::Wake nobody = [](std::int32_t) {};
  const auto host_of = [&](std::int64_t rank) {
    const auto found = std::ranges::find(plan.queues, Queue{RankId(rank), QueueKind::Host});
    return static_cast<std::int32_t>(found - plan.queues.begin());
  };
  marking.begin(2, false);
  marking.step(host_of(0), nobody);
  // Runs everything except the Exit of rank 0.
  for (bool moves = true; moves;) {
    moves = false;
    for (std::int32_t queue = 0; queue < marking.queues(); ++queue) {
      while (queue != host_of(0) && !marking.is_finished(queue) && marking.is_ready(queue)) {
        marking.step(queue, nobody);
        moves = true;
      }
    }
  }
  EXPECT_EQ(marking.epoch(host_of(1)), 2);
  const auto hindrance = marking.hindrance(host_of(1));
  ASSERT_TRUE(hindrance.has_value());
  EXPECT_EQ(hindrance->signal->kind, SignalKind::Credit);
  EXPECT_EQ(hindrance->epoch, 1);
  EXPECT_EQ(hindrance->observed, 0);
  marking.step(host_of(0), nobody);
  EXPECT_TRUE(marking.is_ready(host_of(1)));
}

}  // namespace signals_test
}  // namespace harpe::cpu
