#include "exec/cpu/signals.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "exec/processes/put_orders.h"
#include "plan/refs.h"
#include "sync/nodes.h"
#include "sync/wiring.h"

namespace harpe::cpu {
namespace {

using launch::SignalKind;
using processes::Partition;

class SignalMapper {
 public:
  SignalMapper(const Plan& plan, const Partition& partition, sync::Between between)
      : plan_(plan),
        partition_(partition),
        wiring_(sync::wire(plan, between)),
        fences_(processes::find_fences(plan)),
        exits_(static_cast<std::size_t>(plan.mesh.ranks())),
        next_flag_(static_cast<std::size_t>(partition.processes), partition.processes) {
    signals_.tasks.resize(plan.tasks.size());
    for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
      const TaskId task(static_cast<std::int64_t>(i));
      if (plan.tasks[i].kind == TaskKind::Exit) exits_[rank_of(plan, task).index()] = task;
    }
  }

  ProcessSignals map() && {
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      const TaskId task(static_cast<std::int64_t>(i));
      const sync::TaskWiring& own = wiring_.tasks[i];
      for (const std::size_t meaning : find_before(task)) await(meaning, task, 0);
      if (own.arrival) await(find(task, *own.arrival), task, 1);
      if (own.pulled) await(find(task, *own.pulled), task, 2);
    }
    for (const Meaning& meaning : meanings_) link(meaning);
    signals_.most_flags = std::ranges::max(next_flag_);
    return std::move(signals_);
  }

 private:
  // What signals in the pages of several ranks mean alike, and which stages of tasks wait for it.
  struct Meaning {
    std::optional<SignalKind> kind;
    std::int32_t index = 0;
    bool is_behind_put = false;
    std::vector<TaskId> from;
    std::vector<std::pair<TaskId, std::size_t>> to = {};
  };
  using Key = std::tuple<std::optional<SignalKind>, bool, std::int32_t, std::vector<TaskId>>;

  [[nodiscard]] int process_of(TaskId task) const {
    return partition_.process_of(rank_of(plan_, task));
  }
  [[nodiscard]] bool is_own(TaskId task) const { return process_of(task) == partition_.process; }

  void await(std::size_t meaning, TaskId task, std::size_t stage) {
    meanings_[meaning].to.emplace_back(task, stage);
  }

  // Signals that a network raises behind the same put are one, named for the first.
  std::size_t find(std::optional<SignalKind> kind, std::int32_t index, std::vector<TaskId> from,
                   bool is_behind_put = false) {
    const auto [known, is_new] = numbers_.try_emplace(
        Key(kind, is_behind_put, is_behind_put ? 0 : index, from), meanings_.size());
    if (is_new) {
      meanings_.push_back(
          {.kind = kind, .index = index, .is_behind_put = is_behind_put, .from = std::move(from)});
    }
    return known->second;
  }

  [[nodiscard]] const sync::PageSignal& signal_of(TaskId task, std::int32_t signal) const {
    return wiring_.pages[rank_of(plan_, task).index()][static_cast<std::size_t>(signal)];
  }

  std::size_t find(TaskId task, std::int32_t signal) {
    const sync::PageSignal& page = signal_of(task, signal);
    const TaskId put = page.producers.front();
    const bool is_behind_put =
        page.kind == SignalKind::Sync && fences_.contains(put) &&
        is_far_put(plan_, partition_, put) &&
        destination_of(plan_, plan_.tasks[put.index()]) == rank_of(plan_, task);
    return find(page.kind, page.index, page.producers, is_behind_put);
  }

  // The credits of an Entry are one counter. It has the rank's own Exit too, which the Entry is
  // behind anyway: so ranks that wait for all others wait for the same.
  std::vector<std::size_t> find_before(TaskId task) {
    const sync::TaskWiring& own = wiring_.tasks[task.index()];
    std::vector<std::size_t> found;
    for (const TaskId from : own.after) found.push_back(find(std::nullopt, from.value, {from}));
    std::vector<TaskId> ends;
    for (const std::int32_t signal : own.waits) {
      const sync::PageSignal& page = signal_of(task, signal);
      if (page.kind == SignalKind::Credit) {
        ends.push_back(page.producers.front());
      } else {
        found.push_back(find(task, signal));
      }
    }
    if (ends.empty()) return found;
    ends.push_back(exits_[rank_of(plan_, task).index()]);
    std::ranges::sort(ends);
    found.push_back(find(SignalKind::Credit, 0, std::move(ends)));
    return found;
  }

  // A signal for each process that has producers; a flag for each other process that waits.
  void link(const Meaning& meaning) {
    std::set<int> waiting;
    std::set<std::int32_t> queues;  // of this process
    for (const auto& [task, stage] : meaning.to) {
      waiting.insert(process_of(task));
      if (is_own(task)) queues.insert(plan_.tasks[task.index()].queue.value);
    }
    std::map<int, std::vector<TaskId>> from;
    for (const TaskId task : meaning.from) from[process_of(task)].push_back(task);
    for (const auto& [process, producers] : from) {
      const bool is_raised = process == partition_.process;
      ProcessSignal signal{.kind = meaning.kind,
                           .index = meaning.index,
                           .producers = producers,
                           .arrivals = is_raised ? std::ssize(producers) : 1,
                           .waiters = {queues.begin(), queues.end()},
                           .is_behind_put = meaning.is_behind_put};
      for (const int other : waiting) {
        if (other == process) continue;
        const std::int32_t flag = next_flag_[static_cast<std::size_t>(other)]++;
        if (is_raised) signal.outgoing.push_back({.process = other, .flag = flag});
        if (other == partition_.process) signal.flag = flag;
      }
      if (is_raised || !queues.empty()) add(meaning, std::move(signal), is_raised);
    }
  }

  void add(const Meaning& meaning, ProcessSignal signal, bool is_raised) {
    const auto number = static_cast<std::int32_t>(signals_.signals.size());
    for (const auto& [task, stage] : meaning.to) {
      if (is_own(task)) signals_.tasks[task.index()].waits[stage].push_back(number);
    }
    const std::size_t stage = meaning.kind == SignalKind::Arrival  ? 0
                              : meaning.kind == SignalKind::Pulled ? 1
                                                                   : 2;
    for (const TaskId task : signal.producers) {
      if (is_raised) signals_.tasks[task.index()].raises[stage].push_back(number);
    }
    signals_.signals.push_back(std::move(signal));
  }

  const Plan& plan_;
  const Partition& partition_;
  sync::Wiring wiring_;
  std::map<TaskId, Fence> fences_;
  std::vector<Meaning> meanings_;
  std::map<Key, std::size_t> numbers_;   // of meanings_
  std::vector<TaskId> exits_;            // per rank
  std::vector<std::int32_t> next_flag_;  // of each process's page
  ProcessSignals signals_;
};

}  // namespace

ProcessSignals map_signals(const Plan& plan, const Partition& partition, sync::Between between) {
  return SignalMapper(plan, partition, between).map();
}

bool is_far_put(const Plan& plan, const Partition& partition, TaskId task) {
  if (!sync::goes_out(plan, task)) return false;
  const RankId there = destination_of(plan, plan.tasks[task.index()]);
  return partition.host_of(partition.process_of(there)) !=
         partition.host_of(partition.process_of(rank_of(plan, task)));
}

}  // namespace harpe::cpu
