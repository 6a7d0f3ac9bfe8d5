#include "sync/wiring.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan/refs.h"
#include "sync/nodes.h"
#include "tests/support/proxy_plan.h"
#include "tests/unit/exec/plans.h"

namespace harpe::sync {
namespace wiring_test {

std::size_t rank_at(const Plan& plan, TaskId task) {
  return plan.queues[plan.tasks[task.index()].queue.index()].rank.index();
}

constexpr std::int64_t kChunkBytes = std::int64_t{32} << 10;

Wiring wired(const Plan& plan) { return wire(plan, find_groups(plan), kChunkBytes); }

TaskId id_of(std::size_t index) { return TaskId(static_cast<std::int64_t>(index)); }

// All plans of these tests.
std::vector<Plan> plans() {
  return {test::exchange(3, 12, false), test::exchange(3, 12, true),
          test::gather_gemm(4, 8, 8, 8, "f32"), test::scatter_gemm(2, 8, 8, 8, "f32", true),
          test::split_keys(2, 8, 8, false, "f32")};
}

// True if no rank accesses another rank's homes.
bool is_private(const Plan& plan) {
  for (std::size_t task = 0; task < plan.tasks.size(); ++task) {
    for (const std::vector<Ref>* refs : {&plan.tasks[task].reads, &plan.tasks[task].writes}) {
      for (const Ref& ref : *refs) {
        const Alloc& alloc = plan.allocs[ref.alloc.index()];
        if (alloc.level == Level::Home && alloc.rank.index() != rank_at(plan, id_of(task))) {
          return false;
        }
      }
    }
  }
  return true;
}

TEST(Wiring, makes_events_of_syncs_within_a_rank_and_flags_of_others) {
  for (const Plan& plan : plans()) {
    const Wiring wiring = wired(plan);
    for (std::size_t index = 0; index < plan.syncs.size(); ++index) {
      const Sync& sync = plan.syncs[index];
      const TaskWiring& to = wiring.tasks[sync.to.index()];
      const std::size_t rank = rank_at(plan, sync.to);
      if (rank_at(plan, sync.from) == rank) {
        // Every queue starts behind its Entry anyway.
        const bool is_entry = plan.tasks[sync.from.index()].kind == TaskKind::Entry;
        EXPECT_TRUE(is_entry || std::ranges::count(to.after, sync.from) == 1);
        continue;
      }
      if (is_private(plan) && plan.tasks[sync.from.index()].kind == TaskKind::Entry) continue;
      const auto signal = std::ranges::find_if(to.waits, [&](std::int32_t each) {
        const PageSignal& found = wiring.pages[rank][static_cast<std::size_t>(each)];
        return found.kind == launch::SignalKind::Sync &&
               found.index == static_cast<std::int32_t>(index);
      });
      ASSERT_NE(signal, to.waits.end());
      const PageRaise raise{.rank = RankId(static_cast<std::int64_t>(rank)), .signal = *signal};
      EXPECT_EQ(std::ranges::count(wiring.tasks[sync.from.index()].raises, raise), 1);
    }
  }
}

// A wait without a producer would never end; a signal raised more often than declared would run
// ahead.
TEST(Wiring, raises_every_signal_as_often_as_it_says) {
  for (const Plan& plan : plans()) {
    const Wiring wiring = wired(plan);
    std::vector<std::vector<std::int32_t>> raised;
    for (const std::vector<PageSignal>& page : wiring.pages) raised.emplace_back(page.size(), 0);
    for (std::size_t task = 0; task < wiring.tasks.size(); ++task) {
      const TaskWiring& each = wiring.tasks[task];
      for (const std::vector<PageRaise>* raises :
           {&each.arrivals, &each.raises_after_pull, &each.raises}) {
        for (const PageRaise& raise : *raises) {
          const auto signal = static_cast<std::size_t>(raise.signal);
          const PageSignal& target = wiring.pages[raise.rank.index()][signal];
          ++raised[raise.rank.index()][signal];
          const bool is_flag =
              target.kind == launch::SignalKind::Sync || target.kind == launch::SignalKind::Credit;
          EXPECT_EQ(raise.added, is_flag ? 0U : 1U);
          EXPECT_EQ(std::ranges::count(target.producers, id_of(task)), 1);
        }
      }
    }
    for (std::size_t rank = 0; rank < raised.size(); ++rank) {
      for (std::size_t signal = 0; signal < raised[rank].size(); ++signal) {
        EXPECT_EQ(raised[rank][signal], wiring.pages[rank][signal].arrivals);
      }
    }
  }
}

TEST(Wiring, has_each_task_of_a_rank_once_after_what_it_is_after) {
  for (const Plan& plan : plans()) {
    const Wiring wiring = wired(plan);
    std::size_t placed = 0;
    for (std::size_t rank = 0; rank < wiring.sequence.size(); ++rank) {
      const std::vector<TaskId>& sequence = wiring.sequence[rank];
      placed += sequence.size();
      for (auto task = sequence.begin(); task != sequence.end(); ++task) {
        EXPECT_EQ(rank_at(plan, *task), rank);
        EXPECT_EQ(std::ranges::count(sequence, *task), 1);
        for (const TaskId before : wiring.tasks[task->index()].after) {
          EXPECT_NE(std::find(sequence.begin(), task, before), task);
        }
        for (auto later = task + 1; later != sequence.end(); ++later) {
          const bool one_queue =
              plan.tasks[task->index()].queue == plan.tasks[later->index()].queue;
          EXPECT_TRUE(!one_queue || *task < *later) << "a lane keeps its order";
        }
      }
    }
    EXPECT_EQ(placed, plan.tasks.size());
  }
}

TEST(Wiring, begins_every_queue_behind_the_entry_of_its_rank) {
  const Plan plan = test::gather_gemm(3, 6, 6, 6, "f32");
  const Wiring wiring = wired(plan);
  std::vector<bool> has_begun(plan.queues.size(), false);
  for (std::size_t task = 0; task < plan.tasks.size(); ++task) {
    const QueueId queue = plan.tasks[task].queue;
    if (has_begun[queue.index()] || plan.tasks[task].kind == TaskKind::Entry) {
      has_begun[queue.index()] = true;
      continue;
    }
    has_begun[queue.index()] = true;
    const TaskId entry = id_of(rank_at(plan, id_of(task)));
    EXPECT_EQ(std::ranges::count(wiring.tasks[task].after, entry), 1);
  }
}

// Two ranks push into each other's inboxes. Each may begin once the other has ended the previous
// execution; no rank waits for an Entry.
TEST(Wiring, gives_credit_for_slots_where_homes_are_left_alone) {
  Plan plan = test::scatter_gemm(2, 8, 8, 8, "f32", false);
  ASSERT_TRUE(is_private(plan));
  Wiring wiring = wired(plan);
  const auto find = [&](TaskKind kind, std::size_t rank) {
    std::size_t task = 0;
    while (plan.tasks[task].kind != kind || rank_at(plan, id_of(task)) != rank) ++task;
    return id_of(task);
  };
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const TaskWiring& entry = wiring.tasks[find(TaskKind::Entry, rank).index()];
    const TaskId other = find(TaskKind::Exit, 1 - rank);
    EXPECT_TRUE(entry.raises.empty());
    ASSERT_EQ(entry.waits.size(), 1U);
    const PageSignal credit{.kind = launch::SignalKind::Credit,
                            .index = static_cast<std::int32_t>(1 - rank),
                            .arrivals = 1,
                            .producers = {other}};
    EXPECT_EQ(wiring.pages[rank][static_cast<std::size_t>(entry.waits.front())], credit);
    const PageRaise raise{.rank = RankId(static_cast<std::int64_t>(rank)),
                          .signal = entry.waits.front()};
    EXPECT_EQ(std::ranges::count(wiring.tasks[other.index()].raises, raise), 1);
  }
  // A rank that reads another rank's home must wait for its Entry.
  for (Task& task : plan.tasks) {
    if (task.kind != TaskKind::Copy || rank_at(plan, id_of(&task - plan.tasks.data())) != 0) {
      continue;
    }
    std::size_t home = 0;
    while (plan.allocs[home].level != Level::Home || plan.allocs[home].rank.index() != 1) ++home;
    task.reads.front().alloc = AllocId(static_cast<std::int64_t>(home));
  }
  wiring = wired(plan);
  EXPECT_FALSE(wiring.tasks[find(TaskKind::Entry, 1).index()].raises.empty());
  EXPECT_TRUE(wiring.tasks[find(TaskKind::Entry, 0).index()].raises.empty());
}

TEST(Wiring, makes_a_barrier_one_counter_on_each_rank_that_waits) {
  Plan plan = test::exchange(3, 12, false);
  plan.syncs.clear();
  Barrier barrier;
  for (std::int64_t rank = 0; rank < 3; ++rank) barrier.from.emplace_back(rank);  // entries
  for (std::size_t task = 3; task < plan.tasks.size(); ++task) {
    if (plan.tasks[task].kind == TaskKind::Copy && rank_at(plan, id_of(task)) != 2) {
      barrier.to.push_back(id_of(task));
    }
  }
  plan.barriers = {barrier};
  const Wiring wiring = wired(plan);
  const PageSignal counter{
      .kind = launch::SignalKind::Barrier, .index = 0, .arrivals = 3, .producers = barrier.from};
  EXPECT_EQ(wiring.pages[0], std::vector{counter});
  EXPECT_EQ(wiring.pages[1], std::vector{counter});
  EXPECT_TRUE(wiring.pages[2].empty());
  for (const TaskId to : barrier.to) {
    EXPECT_EQ(wiring.tasks[to.index()].waits, std::vector<std::int32_t>{0});
  }
  const std::vector<PageRaise> both = {{.rank = RankId(0), .signal = 0, .added = 1},
                                       {.rank = RankId(1), .signal = 0, .added = 1}};
  for (const TaskId from : barrier.from) EXPECT_EQ(wiring.tasks[from.index()].raises, both);
}

TEST(Wiring, lets_members_of_a_collective_arrive_and_leave_together) {
  const Plan plan = test::exchange(3, 12, true);
  const Wiring wiring = wired(plan);
  std::vector<TaskId> members;
  for (std::size_t task = 0; task < plan.tasks.size(); ++task) {
    if (plan.tasks[task].kind == TaskKind::Collective) members.push_back(id_of(task));
  }
  ASSERT_EQ(members.size(), 3U);
  for (const TaskId member : members) {
    const TaskWiring& each = wiring.tasks[member.index()];
    const std::vector<PageSignal>& page = wiring.pages[rank_at(plan, member)];
    ASSERT_TRUE(each.arrival && each.pulled);
    const PageSignal& arrival = page[static_cast<std::size_t>(*each.arrival)];
    const PageSignal& pulled = page[static_cast<std::size_t>(*each.pulled)];
    EXPECT_EQ(arrival.kind, launch::SignalKind::Arrival);
    EXPECT_EQ(pulled.kind, launch::SignalKind::Pulled);
    EXPECT_EQ(arrival.arrivals, 3);
    EXPECT_EQ(pulled.producers, members);
    EXPECT_EQ(each.arrivals.size(), 3U);
    EXPECT_EQ(each.raises_after_pull.size(), 3U);
  }
}

// A put ends where it lands: its signals are raised there, behind its arrival. Signals to another
// node are posted; signals within a node never are.
TEST(Wiring, lands_puts_on_the_rank_that_they_go_to) {
  const Plan plan = test::by_proxy(test::push_plan(), Fence::NicOrdered);
  const Groups groups = find_groups(plan);
  const Wiring wiring = wire(plan, groups, kChunkBytes);
  const std::vector<TaskId> puts = puts_of(plan);
  ASSERT_EQ(puts.size(), 8U);
  ASSERT_EQ(wiring.landings.size(), 8U);
  for (const TaskId put : puts) {
    const std::size_t from = rank_at(plan, put);
    const auto to = static_cast<std::size_t>(destination_of(plan, plan.tasks[put.index()]).value);
    EXPECT_NE(from, to) << "a put within a rank is a copy";
    const TaskWiring& landing = wiring.landings.at(put);
    ASSERT_EQ(landing.waits.size(), 1U);
    const PageSignal& arrived = wiring.pages[to][static_cast<std::size_t>(landing.waits.front())];
    EXPECT_EQ(arrived.kind, launch::SignalKind::Arrived);
    EXPECT_EQ(arrived.index, put.value);
    EXPECT_TRUE(arrived.is_posted);
    const std::vector<PageRaise>& raises = wiring.tasks[put.index()].raises;
    ASSERT_EQ(raises.size(), 1U) << "by its own rank its arrival alone";
    EXPECT_EQ(raises.front().signal, landing.waits.front());
    ASSERT_EQ(landing.raises.size(), 1U) << "one kernel member waits for each";
    EXPECT_FALSE(landing.raises.front().is_posted);
    EXPECT_EQ(wiring.pages[to][static_cast<std::size_t>(landing.raises.front().signal)].kind,
              launch::SignalKind::Sync);
  }
  for (std::size_t rank = 0; rank < wiring.pages.size(); ++rank) {
    EXPECT_EQ(wiring.landed[rank].size(), 4U);
    for (const PageSignal& signal : wiring.pages[rank]) {
      const bool is_far = std::ranges::any_of(
          signal.producers, [&](TaskId from) { return rank_at(plan, from) != rank; });
      const bool lands =
          signal.kind == launch::SignalKind::Sync && goes_out(plan, signal.producers.front());
      EXPECT_EQ(signal.is_posted, is_far && !lands && signal.kind != launch::SignalKind::RingSpace);
    }
  }
}

// An event behind a put shows that this put and all earlier ones of its queue are taken.
TEST(Wiring, asks_the_other_rank_where_a_task_comes_behind_a_put) {
  Plan plan = test::by_proxy(test::push_plan(), Fence::NicOrdered);
  const std::vector<TaskId> puts = puts_of(plan);
  const std::size_t rank = rank_at(plan, puts[1]);
  const auto finalise = std::ranges::find_if(plan.tasks, [&](const Task& task) {
    return task.kind == TaskKind::Finalise && plan.queues[task.queue.index()].rank.index() == rank;
  });
  ASSERT_NE(finalise, plan.tasks.end());
  const TaskId to(finalise - plan.tasks.begin());
  plan.syncs.push_back({.from = puts[1], .to = to});
  const Wiring wiring = wired(plan);
  std::vector<std::int32_t> taken;
  for (const std::int32_t signal : wiring.tasks[to.index()].waits) {
    const PageSignal& found = wiring.pages[rank][static_cast<std::size_t>(signal)];
    if (found.kind == launch::SignalKind::Taken) taken.push_back(found.index);
  }
  EXPECT_EQ(taken, (std::vector{static_cast<std::int32_t>(puts[0].value),
                                static_cast<std::int32_t>(puts[1].value)}));
  for (const TaskId put : {puts[0], puts[1]}) {
    EXPECT_TRUE(std::ranges::any_of(wiring.landings.at(put).raises, [&](const PageRaise& raise) {
      return raise.is_posted && raise.rank.index() == rank;
    }));
  }
}

// An epoch's signal to one rank shows that puts to other ranks have arrived. A task that needs
// their landing gets a further signal.
TEST(Wiring, waits_for_landings_that_an_epoch_tells_of_by_way_of_others) {
  for (const Fence fence : {Fence::OneQuiet, Fence::PerDestination}) {
    Plan plan = test::by_proxy(test::scatter_gemm(3, 12, 8, 8, "f32", false), fence);
    std::vector<TaskId> puts;
    for (const TaskId put : puts_of(plan)) {
      if (rank_at(plan, put) == 0) puts.push_back(put);
    }
    ASSERT_EQ(puts.size(), 2U);
    const auto signal_of = [&](TaskId put) {
      return std::ranges::find_if(plan.syncs, [&](const Sync& sync) {
        return sync.from == put && rank_at(plan, sync.to) != 0;
      });
    };
    const TaskId told = signal_of(puts[0])->to;
    // Removes the first put's own signal; the second's reaches its reader through the other rank.
    const TaskId teller = signal_of(puts[1])->to;
    *signal_of(puts[0]) = {.from = teller, .to = told, .kind = SyncKind::Flag, .flag = 77};
    const Wiring wiring = wired(plan);
    const std::vector<PageSignal>& page = wiring.pages[rank_at(plan, told)];
    const bool is_told =
        std::ranges::any_of(wiring.tasks[told.index()].waits, [&](std::int32_t signal) {
          const PageSignal& found = page[static_cast<std::size_t>(signal)];
          return found.kind == launch::SignalKind::Taken && found.index == puts[0].value;
        });
    EXPECT_EQ(is_told, fence == Fence::OneQuiet);
  }
}

// Barriers count signals within a node, but set one signal per rank across nodes.
TEST(Wiring, counts_no_signal_that_is_posted) {
  Plan plan = test::exchange(4, 8, false);
  plan.mesh.axes = {{"node", 2}, {"gpu", 2}};
  // Rank 0 puts one block to the other node, so that the plan uses the network.
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    Task& task = plan.tasks[i];
    if (task.kind != TaskKind::Copy || rank_at(plan, id_of(i)) != 0) continue;
    plan.queues[task.queue.index()].kind = QueueKind::Proxy;
    plan.allocs[task.writes.front().alloc.index()].rank = RankId(2);
    break;
  }
  ASSERT_TRUE(Nodes(plan).have_network());
  Barrier barrier;
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    if (plan.tasks[i].kind == TaskKind::Finalise) barrier.from.push_back(id_of(i));
    if (plan.tasks[i].kind == TaskKind::Exit) barrier.to.push_back(id_of(i));
  }
  if (barrier.from.empty()) {
    for (const TaskId exit : barrier.to) barrier.from.push_back(TaskId(exit.value - 1));
  }
  plan.barriers = {barrier};
  const Wiring wiring = wired(plan);
  for (const std::vector<PageSignal>& page : wiring.pages) {
    std::int32_t arrivals = 0;
    for (const PageSignal& signal : page) {
      if (signal.kind != launch::SignalKind::Barrier) continue;
      arrivals += signal.arrivals;
      EXPECT_TRUE(!signal.is_posted || signal.arrivals == 1);
    }
    EXPECT_EQ(arrivals, static_cast<std::int32_t>(barrier.from.size()));
  }
}

// On CPU ranks a put is a single task without a landing, whatever the mesh says of nodes. A task
// behind its end waits for it even in the same queue.
TEST(Wiring, leaves_puts_of_cpu_ranks_to_the_network) {
  Plan plan = test::by_proxy(test::push_plan(), Fence::PerPut);
  const std::vector<TaskId> puts = puts_of(plan);
  ASSERT_FALSE(puts.empty());
  const TaskId put = puts.front();
  std::size_t next = put.index() + 1;
  while (plan.tasks[next].queue != plan.tasks[put.index()].queue) ++next;
  plan.syncs.push_back({.from = put, .to = id_of(next), .kind = SyncKind::Event});
  const Wiring wiring = wire(plan);
  EXPECT_TRUE(wiring.landings.empty());
  EXPECT_EQ(std::ranges::count(wiring.tasks[next].after, put), 1);
  for (const std::vector<PageSignal>& page : wiring.pages) {
    for (const PageSignal& signal : page) EXPECT_FALSE(signal.is_posted);
  }
  for (const Sync& sync : plan.syncs) {
    const RankId to = rank_of(plan, sync.to);
    if (!goes_out(plan, sync.from) || rank_of(plan, sync.from) == to) continue;
    EXPECT_TRUE(std::ranges::any_of(wiring.tasks[sync.from.index()].raises,
                                    [&](const PageRaise& raise) { return raise.rank == to; }));
  }
}

}  // namespace wiring_test
}  // namespace harpe::sync
