#include "sync/wiring.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "plan/refs.h"
#include "support/check.h"
#include "sync/nodes.h"
#include "sync/wired_order.h"

namespace harpe::sync {
namespace {

class Wirer {
 public:
  // If nodes are joined by a network, puts have landings; otherwise they are ordinary tasks.
  Wirer(const Plan& plan, const Groups& groups, std::int64_t chunk_bytes, Grants grants,
        Nodes nodes)
      : plan_(plan),
        groups_(groups),
        chunk_bytes_(chunk_bytes),
        grants_(grants),
        nodes_(std::move(nodes)),
        puts_(nodes_.have_network() ? puts_of(plan) : std::vector<TaskId>()) {
    wiring_.tasks.resize(plan.tasks.size());
    wiring_.pages.resize(static_cast<std::size_t>(plan.mesh.ranks()));
    wiring_.sequence.resize(wiring_.pages.size());
    wiring_.landed.resize(wiring_.pages.size());
    find_boundaries();
  }

  Wiring wire() {
    wire_entries();
    wire_landings();
    wire_exits();
    wire_syncs();
    wire_barriers();
    wire_collectives();
    cover_epochs();
    std::vector<std::vector<TaskId>> tasks(wiring_.sequence.size());  // by rank
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      const TaskId task(static_cast<std::int64_t>(i));
      tasks[rank_of(plan_, task).index()].push_back(task);
    }
    for (std::size_t rank = 0; rank < tasks.size(); ++rank) put_in_order(rank, tasks[rank]);
    return std::move(wiring_);
  }

 private:
  [[nodiscard]] TaskWiring& at(TaskId task) { return wiring_.tasks[task.index()]; }
  [[nodiscard]] QueueId queue_of(TaskId task) const { return plan_.tasks[task.index()].queue; }

  std::int32_t add_signal(RankId rank, PageSignal signal) {
    std::vector<PageSignal>& page = wiring_.pages[rank.index()];
    page.push_back(std::move(signal));
    return static_cast<std::int32_t>(page.size()) - 1;
  }

  // The next task of a queue starts once a put is posted; waiting for the put's end needs an edge.
  void add_edge(TaskId from, TaskId to) {
    const bool is_behind = queue_of(from) == queue_of(to) && (puts(from) || !goes_out(plan_, from));
    std::vector<TaskId>& after = at(to).after;
    if (!is_behind && std::ranges::find(after, from) == after.end()) after.push_back(from);
  }

  // The rank that ends the task in the eyes of other ranks: for a put, the receiver.
  [[nodiscard]] bool puts(TaskId task) const {
    return nodes_.have_network() && goes_out(plan_, task);
  }
  [[nodiscard]] RankId ender_of(TaskId task) const {
    return puts(task) ? destination_of(plan_, plan_.tasks[task.index()]) : rank_of(plan_, task);
  }
  [[nodiscard]] TaskWiring& end_of(TaskId task) {
    return puts(task) ? wiring_.landings.at(task) : at(task);
  }

  // A flag on rank `to`, raised by `by`, the wiring of a task of rank `from`.
  std::int32_t add_flag(TaskWiring& by, RankId from, RankId to, PageSignal signal) {
    signal.is_posted = !nodes_.are_together(from, to);
    if (signal.is_posted) name_ring(from, to);
    const std::int32_t index = add_signal(to, signal);
    by.raises.push_back({.rank = to, .signal = index, .added = 0, .is_posted = signal.is_posted});
    return index;
  }

  // One signal for space in each ring that is posted to.
  void name_ring(RankId from, RankId to) {
    if (!rings_.emplace(from, to).second) return;
    add_signal(from, {.kind = launch::SignalKind::RingSpace,
                      .index = static_cast<std::int32_t>(to.value),
                      .arrivals = 1,
                      .producers = {entries_[to.index()]}});
  }

  void find_boundaries() {
    const std::size_t ranks = wiring_.pages.size();
    entries_.resize(ranks);
    exits_.resize(ranks);
    is_left_alone_.assign(ranks, true);
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      const TaskId task(static_cast<std::int64_t>(i));
      const RankId rank = rank_of(plan_, task);
      if (is_entry(task)) entries_[rank.index()] = task;
      if (plan_.tasks[i].kind == TaskKind::Exit) exits_[rank.index()] = task;
      for (const std::vector<Ref>* refs : {&plan_.tasks[i].reads, &plan_.tasks[i].writes}) {
        for (const Ref& ref : *refs) {
          const Alloc& alloc = plan_.allocs[ref.alloc.index()];
          if (alloc.level == Level::Home && alloc.rank != rank) {
            is_left_alone_[alloc.rank.index()] = false;
          }
        }
      }
    }
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      HP_CHECK(entries_[rank].valid() && exits_[rank].valid(), "every rank has Entry and Exit");
    }
  }

  [[nodiscard]] bool is_entry(TaskId task) const {
    return plan_.tasks[task.index()].kind == TaskKind::Entry;
  }

  // Whether a credit replaces the waits for this Entry.
  [[nodiscard]] bool gives_credit(TaskId task) const {
    return grants_ == Grants::AtExit && is_entry(task) &&
           is_left_alone_[rank_of(plan_, task).index()];
  }

  // Every queue of a rank starts behind its Entry, which begins the epoch.
  void wire_entries() {
    std::map<QueueId, TaskId> firsts;
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      firsts.emplace(plan_.tasks[i].queue, TaskId(static_cast<std::int64_t>(i)));
    }
    for (const auto& [queue, first] : firsts) {
      const TaskId entry = entries_[plan_.queues[queue.index()].rank.index()];
      if (entry != first) add_edge(entry, first);
    }
  }

  // One credit for each pair of ranks.
  void wire_credit(RankId from, RankId to) {
    if (from == to || !credits_.emplace(from, to).second) return;
    const TaskId exit = exits_[from.index()];
    const std::int32_t signal = add_flag(at(exit), from, to,
                                         {.kind = launch::SignalKind::Credit,
                                          .index = static_cast<std::int32_t>(from.value),
                                          .arrivals = 1,
                                          .producers = {exit}});
    at(entries_[to.index()]).waits.push_back(signal);
  }

  // Landings follow the order of posting, queue by queue. An Exit comes behind all of them, so that
  // a rank that may write to this rank again may also write to its landing memory.
  void wire_landings() {
    std::map<QueueId, std::map<RankId, std::vector<TaskId>>> queues;
    for (const TaskId put : puts_) queues[queue_of(put)][ender_of(put)].push_back(put);
    for (const auto& [queue, ranks] : queues) {
      for (const auto& [to, puts] : ranks) {
        for (const TaskId put : puts) wire_landing(put, to);
        at(exits_[to.index()]).after.push_back(puts.back());
      }
    }
  }

  void wire_landing(TaskId put, RankId to) {
    TaskWiring& landing = wiring_.landings[put];
    landing.after = {entries_[to.index()]};
    const RankId from = rank_of(plan_, put);
    const std::int32_t arrived = add_signal(to, {.kind = launch::SignalKind::Arrived,
                                                 .index = static_cast<std::int32_t>(put.value),
                                                 .arrivals = 1,
                                                 .producers = {put},
                                                 .is_posted = true});
    landing.waits = {arrived};
    name_ring(from, to);
    at(put).raises.push_back({.rank = to, .signal = arrived, .added = 0, .is_posted = true});
    wiring_.landed[to.index()].push_back(put);
  }

  // The flag by which `rank` learns that the put has landed; created on first use.
  std::int32_t taken_of(TaskId put, RankId rank) {
    const auto known = taken_.find({put, rank});
    if (known != taken_.end()) return known->second;
    const RankId to = ender_of(put);
    const std::int32_t signal = add_flag(wiring_.landings.at(put), to, rank,
                                         {.kind = launch::SignalKind::Taken,
                                          .index = static_cast<std::int32_t>(put.value),
                                          .arrivals = 1,
                                          .producers = {exits_[to.index()]}});
    taken_[{put, rank}] = signal;
    return signal;
  }

  // A task behind a put on the same rank waits for all puts of that queue so far. An Exit only
  // waits until they are posted: they are packed by then and do not read their sources again.
  void wire_drain(TaskId put, TaskId to) {
    if (plan_.tasks[to.index()].kind == TaskKind::Exit) return add_edge(put, to);
    for (const TaskId each : puts_) {
      if (queue_of(each) == queue_of(put) && each <= put)
        add_wait(to, taken_of(each, rank_of(plan_, to)));
    }
  }

  void add_wait(TaskId to, std::int32_t signal) {
    std::vector<std::int32_t>& waits = at(to).waits;
    if (std::ranges::find(waits, signal) == waits.end()) waits.push_back(signal);
  }

  // An Exit waits for other ranks only after all other work of its rank: a kernel that waits early
  // would occupy an SM that another kernel may need.
  void wire_exits() {
    std::map<QueueId, TaskId> lasts;
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      lasts[plan_.tasks[i].queue] = TaskId(static_cast<std::int64_t>(i));
    }
    for (const auto& [queue, last] : lasts) {
      const TaskId exit = exits_[plan_.queues[queue.index()].rank.index()];
      if (exit != last) add_edge(last, exit);
    }
  }

  void wire_syncs() {
    for (std::size_t i = 0; i < plan_.syncs.size(); ++i) {
      const Sync& sync = plan_.syncs[i];
      const RankId to = rank_of(plan_, sync.to);
      if (puts(sync.from) && rank_of(plan_, sync.from) == to) {
        wire_drain(sync.from, sync.to);
        continue;
      }
      const RankId from = ender_of(sync.from);
      const bool within = from == to;
      // Every queue already starts behind its rank's Entry.
      if (within && is_entry(sync.from)) continue;
      if (gives_credit(sync.from)) {
        wire_credit(rank_of(plan_, sync.from), to);
        continue;
      }
      if (within && (!groups_.is_inside(sync.to) || queue_of(sync.from) == queue_of(sync.to))) {
        add_edge(sync.from, sync.to);
        continue;
      }
      const bool is_counted = !within && nodes_.are_together(from, to);
      const std::uint32_t chunks =
          is_counted ? count_chunks(plan_.tasks[sync.from.index()], chunk_bytes_) : 0;
      PageSignal signal{.kind = launch::SignalKind::Sync,
                        .index = static_cast<std::int32_t>(i),
                        .arrivals = std::max(1, static_cast<std::int32_t>(chunks)),
                        .producers = {sync.from}};
      const std::int32_t index = add_flag(end_of(sync.from), from, to, std::move(signal));
      end_of(sync.from).raises.back().added = chunks;
      at(sync.to).waits.push_back(index);
    }
  }

  // One signal on every waiting rank counts all `from` tasks of its node. Signals across nodes are
  // set, not counted, so each `from` task on another node has its own.
  void wire_barriers() {
    for (std::size_t i = 0; i < plan_.barriers.size(); ++i) {
      const Barrier& barrier = plan_.barriers[i];
      if (std::ranges::all_of(barrier.from, [&](TaskId from) { return gives_credit(from); })) {
        for (const TaskId from : barrier.from) {
          for (const TaskId to : barrier.to) {
            wire_credit(rank_of(plan_, from), rank_of(plan_, to));
          }
        }
        continue;
      }
      std::map<RankId, std::vector<std::int32_t>> signals;
      for (const TaskId to : barrier.to) {
        const RankId rank = rank_of(plan_, to);
        const auto [found, is_new] = signals.try_emplace(rank);
        if (is_new) found->second = wire_arrivals(static_cast<std::int32_t>(i), barrier.from, rank);
        for (const std::int32_t signal : found->second) at(to).waits.push_back(signal);
      }
    }
  }

  // The barrier's signals on that rank.
  std::vector<std::int32_t> wire_arrivals(std::int32_t barrier, const std::vector<TaskId>& from,
                                          RankId rank) {
    std::vector<std::int32_t> signals;
    std::vector<TaskId> near;
    for (const TaskId each : from) {
      if (nodes_.are_together(ender_of(each), rank)) {
        near.push_back(each);
        continue;
      }
      signals.push_back(add_flag(end_of(each), ender_of(each), rank,
                                 {.kind = launch::SignalKind::Barrier,
                                  .index = barrier,
                                  .arrivals = 1,
                                  .producers = {each}}));
    }
    if (near.empty()) return signals;
    signals.push_back(add_signal(rank, {.kind = launch::SignalKind::Barrier,
                                        .index = barrier,
                                        .arrivals = static_cast<std::int32_t>(near.size()),
                                        .producers = near}));
    for (const TaskId each : near) {
      end_of(each).raises.push_back({.rank = rank, .signal = signals.back(), .added = 1});
    }
    return signals;
  }

  void wire_collectives() {
    std::map<std::int32_t, std::vector<TaskId>> groups;
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      if (plan_.tasks[i].kind != TaskKind::Collective) continue;
      groups[plan_.tasks[i].group].emplace_back(static_cast<std::int64_t>(i));
    }
    for (const auto& [group, members] : groups) {
      PageSignal signal{.kind = launch::SignalKind::Arrival,
                        .index = group,
                        .arrivals = static_cast<std::int32_t>(members.size()),
                        .producers = members};
      for (const TaskId member : members) {
        const RankId rank = rank_of(plan_, member);
        signal.kind = launch::SignalKind::Arrival;
        const std::int32_t arrival = add_signal(rank, signal);
        signal.kind = launch::SignalKind::Pulled;
        const std::int32_t pulled = add_signal(rank, signal);
        at(member).arrival = arrival;
        at(member).pulled = pulled;
        for (const TaskId other : members) {
          at(other).arrivals.push_back({.rank = rank, .signal = arrival, .added = 1});
          at(other).raises_after_pull.push_back({.rank = rank, .signal = pulled, .added = 1});
        }
      }
    }
  }

  // A one_quiet signal states that its queue's puts to other ranks have arrived, but not that they
  // have landed. Tasks that rely on the data also wait for those landings.
  void cover_epochs() {
    std::map<QueueId, std::set<RankId>> queues;  // with one_quiet signals: their receivers
    for (const Sync& sync : plan_.syncs) {
      if (sync.fence == Fence::OneQuiet && puts(sync.from)) queues[queue_of(sync.from)];
    }
    for (const TaskId put : puts_) {
      if (const auto queue = queues.find(queue_of(put)); queue != queues.end()) {
        queue->second.insert(ender_of(put));
      }
    }
    std::erase_if(queues, [](const auto& queue) { return queue.second.size() < 2; });
    if (queues.empty()) return;
    const WiredOrder order(plan_, wiring_);
    for (const TaskId put : puts_) {
      if (queues.contains(queue_of(put))) cover(put, order);
    }
  }

  // Every task that accesses the put's destination runs before the put or behind its landing.
  void cover(TaskId put, const WiredOrder& order) {
    const std::vector<bool> behind = order.behind_landing(put);
    const std::vector<bool> before = order.before(put);
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      const TaskId task(static_cast<std::int64_t>(i));
      if (task == put || behind[i] || before[i] || !touches(task, put)) continue;
      add_wait(task, taken_of(put, rank_of(plan_, task)));
    }
  }

  [[nodiscard]] bool touches(TaskId task, TaskId put) const {
    const Task& one = plan_.tasks[task.index()];
    return std::ranges::any_of(plan_.tasks[put.index()].writes, [&](const Ref& brought) {
      const auto meets = [&](const Ref& ref) { return meet(ref, brought); };
      return std::ranges::any_of(one.reads, meets) || std::ranges::any_of(one.writes, meets);
    });
  }

  // Landings precede everything but the Entry.
  [[nodiscard]] bool is_placed(TaskId task, const std::vector<bool>& placed,
                               std::size_t rank) const {
    return placed[task.index()] || rank_of(plan_, task).index() != rank;
  }

  // Queues of the host come first, because Entries begin an execution. Queues of copy engines come
  // before those of kernels, which wait inside for these copies.
  [[nodiscard]] static int turn_of(QueueKind kind) {
    if (kind == QueueKind::Host) return 0;
    return kind == QueueKind::Ce ? 1 : 2;
  }

  // Keeps each queue's order; a task comes once everything in its `after` has come.
  void put_in_order(std::size_t rank, const std::vector<TaskId>& own) {
    using Place = std::pair<int, QueueId>;
    std::map<Place, std::vector<TaskId>> queues;
    for (const TaskId task : own) {
      const QueueId queue = queue_of(task);
      queues[{turn_of(plan_.queues[queue.index()].kind), queue}].push_back(task);
    }
    std::size_t left = own.size();
    std::vector<bool> placed(plan_.tasks.size(), false);
    std::map<Place, std::size_t> heads;
    while (left > 0) {
      const std::size_t before = left;
      for (const auto& [place, tasks] : queues) {
        std::size_t& head = heads[place];
        while (head < tasks.size() &&
               std::ranges::all_of(
                   at(tasks[head]).after,
                   [&](TaskId from) { return is_placed(from, placed, rank); })) {
          placed[tasks[head].index()] = true;
          wiring_.sequence[rank].push_back(tasks[head++]);
          --left;
        }
      }
      HP_CHECK(left < before, "a verified plan has no cycle within a rank");
    }
  }

  const Plan& plan_;
  const Groups& groups_;
  std::int64_t chunk_bytes_;
  Grants grants_;
  Nodes nodes_;
  std::vector<TaskId> puts_;  // puts with landings
  Wiring wiring_;
  std::vector<TaskId> entries_;  // by rank, like the next two
  std::vector<TaskId> exits_;
  std::vector<bool> is_left_alone_;  // no other rank reads or writes this rank's homes
  std::set<std::pair<RankId, RankId>> credits_;
  std::set<std::pair<RankId, RankId>> rings_;
  std::map<std::pair<TaskId, RankId>, std::int32_t> taken_;
};

}  // namespace

std::uint32_t count_chunks(const Task& task, std::int64_t chunk_bytes) {
  const bool is_sent = chunk_bytes > 0 && task.kind == TaskKind::Copy && task.via == Via::Tma;
  return is_sent ? static_cast<std::uint32_t>((task.bytes + chunk_bytes - 1) / chunk_bytes) : 0;
}

bool waits_for_entries(const Plan& plan, const Wiring& wiring, TaskId task) {
  const std::vector<PageSignal>& page = wiring.pages[rank_of(plan, task).index()];
  return std::ranges::all_of(wiring.tasks[task.index()].waits, [&](std::int32_t signal) {
    return std::ranges::all_of(page[static_cast<std::size_t>(signal)].producers, [&](TaskId from) {
      return plan.tasks[from.index()].kind == TaskKind::Entry;
    });
  });
}

const TaskWiring& Wiring::on(const Plan& plan, RankId rank, TaskId task) const {
  return rank_of(plan, task) == rank ? tasks[task.index()] : landings.at(task);
}

void end_by_itself(TaskWiring& collective) {
  collective.raises_after_pull.clear();
  collective.pulled.reset();
}

Wiring wire(const Plan& plan, const Groups& groups, std::int64_t chunk_bytes, Grants grants) {
  return Wirer(plan, groups, chunk_bytes, grants, Nodes(plan)).wire();
}

Wiring wire(const Plan& plan, Grants grants) {
  return Wirer(plan, no_groups(plan), 0, grants, Nodes()).wire();
}

}  // namespace harpe::sync
