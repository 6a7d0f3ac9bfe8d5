#include "exec/cpu/signals.h"

#include <algorithm>

#include "exec/describe.h"
#include "support/check.h"

namespace harpe::cpu {
namespace {

using processes::Partition;

void add_unique(std::vector<std::int32_t>& list, std::int32_t value) {
  if (std::ranges::find(list, value) == list.end()) list.push_back(value);
}

class Maker {
 public:
  Maker(const Plan& plan, const Partition& partition)
      : plan_(plan),
        partition_(partition),
        next_flag_(static_cast<std::size_t>(partition.processes), partition.processes) {
    signals_.waits.resize(plan.tasks.size());
    signals_.raises.resize(plan.tasks.size());
  }

  ProcessSignals make() && {
    link_entries();
    link_syncs();
    for (std::size_t i = 0; i < plan_.barriers.size(); ++i) {
      const Barrier& barrier = plan_.barriers[i];
      const Link link = link_tasks({.kind = ProcessSignalKind::Barrier, .index = index_of(i)},
                                   barrier.from, barrier.to, true);
      announce(link, barrier.from);
      wait(link, barrier.to);
    }
    link_collectives();
    signals_.flags = next_flag_[static_cast<std::size_t>(partition_.process)];
    signals_.most_flags = std::ranges::max(next_flag_);
    return std::move(signals_);
  }

 private:
  // What this process raises, and what it waits for, of one thing that tasks say to others.
  struct Link {
    std::int32_t raised = -1;
    std::vector<Wait> waits;
  };

  static std::int32_t index_of(std::size_t at) { return static_cast<std::int32_t>(at); }
  [[nodiscard]] int process_of(TaskId task) const {
    return partition_.process_of(rank_of(plan_, task));
  }
  [[nodiscard]] bool is_own(TaskId task) const { return process_of(task) == partition_.process; }
  [[nodiscard]] std::int32_t queue_of(TaskId task) const {
    return plan_.tasks[task.index()].queue.value;
  }

  std::int32_t add(ProcessSignal signal) {
    signals_.signals.push_back(std::move(signal));
    return static_cast<std::int32_t>(signals_.signals.size()) - 1;
  }

  [[nodiscard]] std::map<int, std::vector<TaskId>> by_process(
      const std::vector<TaskId>& tasks) const {
    std::map<int, std::vector<TaskId>> of;
    for (const TaskId task : tasks) of[process_of(task)].push_back(task);
    return of;
  }

  Link link_tasks(const ProcessSignal& like, const std::vector<TaskId>& from,
                  const std::vector<TaskId>& to, bool counts) {
    Link link;
    const auto waiting = by_process(to);
    std::vector<std::int32_t> queues;
    if (const auto own = waiting.find(partition_.process); own != waiting.end()) {
      for (const TaskId task : own->second) add_unique(queues, queue_of(task));
    }
    for (const auto& [process, producers] : by_process(from)) {
      const bool is_own = process == partition_.process;
      ProcessSignal signal = like;
      signal.producers = producers;
      signal.members = counts && is_own ? std::ssize(producers) : 0;
      signal.waiters = queues;
      for (const auto& [other, tasks] : waiting) {
        if (other == process) continue;
        const std::int32_t flag = next_flag_[static_cast<std::size_t>(other)]++;
        if (is_own) signal.outgoing.push_back({.process = other, .flag = flag});
        if (other == partition_.process) signal.flag = flag;
      }
      const bool is_awaited = !queues.empty();
      if (!is_own && !is_awaited) continue;
      const std::int64_t scale = std::max<std::int64_t>(signal.members, 1);
      const std::int32_t number = add(std::move(signal));
      if (is_own) link.raised = number;
      if (is_awaited) link.waits.push_back({.signal = number, .scale = scale});
    }
    return link;
  }

  void announce(const Link& link, const std::vector<TaskId>& from) {
    if (link.raised < 0) return;
    for (const TaskId task : from) {
      if (is_own(task)) signals_.raises[task.index()].push_back(link.raised);
    }
  }

  void wait(const Link& link, const std::vector<TaskId>& to) {
    for (const TaskId task : to) {
      if (!is_own(task)) continue;
      std::vector<Wait>& waits = signals_.waits[task.index()];
      waits.insert(waits.end(), link.waits.begin(), link.waits.end());
    }
  }

  // A queue may begin an execution when its rank's Entry has run. Where the plan itself has no edge
  // that says so (a queue whose first task needs nothing of this rank), a queue could otherwise run
  // executions ahead of its rank.
  void link_entries() {
    std::vector<bool> has_first(plan_.queues.size(), false);
    std::map<RankId, TaskId> entries;
    std::map<RankId, std::vector<TaskId>> others;  // first tasks of queues
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      const TaskId task(static_cast<std::int64_t>(i));
      const std::size_t queue = plan_.tasks[i].queue.index();
      HP_CHECK(queue < has_first.size(), "lane of task " + std::to_string(i));
      const RankId rank = plan_.queues[queue].rank;
      if (plan_.tasks[i].kind == TaskKind::Entry) {
        HP_CHECK(!has_first[queue] && !entries.contains(rank), "a rank begins with its one Entry");
        entries.emplace(rank, task);
      } else if (!has_first[queue]) {
        others[rank].push_back(task);
      }
      has_first[queue] = true;
    }
    for (const auto& [rank, firsts] : others) {
      HP_CHECK(entries.contains(rank), "an Entry of rank " + std::to_string(rank.value));
    }
    for (const auto& [rank, entry] : entries) {
      const Link link = link_tasks({.kind = ProcessSignalKind::Entry, .index = rank.value}, {entry},
                                   others[rank], false);
      announce(link, {entry});
      wait(link, others[rank]);
    }
  }

  [[nodiscard]] Raise raise_of(const Sync& sync) const {
    if (!is_far_put(plan_, partition_, sync.from)) return Raise::Over;
    if (sync.kind == SyncKind::Event) return Raise::Over;
    if (!sync.fence) return Raise::Posted;
    const RankId there = destination_of(plan_, plan_.tasks[sync.from.index()]);
    return rank_of(plan_, sync.to) == there ? Raise::Behind : Raise::Over;
  }

  // Signals that a network raises behind the same put in the same process are one.
  void link_syncs() {
    std::map<std::pair<TaskId, int>, Link> behind;
    for (std::size_t i = 0; i < plan_.syncs.size(); ++i) {
      const Sync& sync = plan_.syncs[i];
      const Raise raise = raise_of(sync);
      if (raise == Raise::Behind) {
        const auto known = behind.find({sync.from, process_of(sync.to)});
        if (known != behind.end()) {
          for (const Wait& same : known->second.waits) {
            add_unique(signals_.signals[static_cast<std::size_t>(same.signal)].waiters,
                       queue_of(sync.to));
          }
          wait(known->second, {sync.to});
          continue;
        }
      }
      const Link link =
          link_tasks({.kind = ProcessSignalKind::Sync, .index = index_of(i), .raise = raise},
                     {sync.from}, {sync.to}, false);
      if (raise == Raise::Behind) behind[{sync.from, process_of(sync.to)}] = link;
      announce(link, {sync.from});
      wait(link, {sync.to});
    }
  }

  void link_collectives() {
    std::map<std::int32_t, std::vector<TaskId>> groups;
    for (std::size_t task = 0; task < plan_.tasks.size(); ++task) {
      if (plan_.tasks[task].kind != TaskKind::Collective) continue;
      groups[plan_.tasks[task].group].emplace_back(static_cast<std::int64_t>(task));
    }
    for (const auto& [group, members] : groups) {
      const Link arrival =
          link_tasks({.kind = ProcessSignalKind::Arrival, .index = group}, members, members, true);
      const Link pulled =
          link_tasks({.kind = ProcessSignalKind::Pulled, .index = group}, members, members, true);
      for (const TaskId task : members) {
        if (!is_own(task)) continue;
        signals_.collectives[task] = {.arrival = arrival.raised,
                                      .pulled = pulled.raised,
                                      .arrived = arrival.waits,
                                      .left = pulled.waits};
      }
    }
  }

  const Plan& plan_;
  const Partition& partition_;
  std::vector<std::int32_t> next_flag_;  // of each process's page
  ProcessSignals signals_;
};

}  // namespace

ProcessSignals signals_of(const Plan& plan, const Partition& partition) {
  return Maker(plan, partition).make();
}

bool is_far_put(const Plan& plan, const Partition& partition, TaskId task) {
  const Task& put = plan.tasks[task.index()];
  if (!is_put(plan, put) || put.writes.empty()) return false;
  const int there = partition.process_of(destination_of(plan, put));
  return partition.host_of(there) != partition.host_of(partition.process_of(rank_of(plan, task)));
}

}  // namespace harpe::cpu
