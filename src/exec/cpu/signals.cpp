#include "exec/cpu/signals.h"

#include <algorithm>
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
  SignalMapper(const Plan& plan, const Partition& partition)
      : plan_(plan),
        partition_(partition),
        wiring_(sync::wire(plan)),
        fences_(processes::find_fences(plan)),
        exits_(static_cast<std::size_t>(plan.mesh.ranks())),
        next_flag_(static_cast<std::size_t>(partition.processes), partition.processes) {
    signals_.waits.resize(plan.tasks.size());
    signals_.raises.resize(plan.tasks.size());
    for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
      const TaskId task(static_cast<std::int64_t>(i));
      if (plan.tasks[i].kind == TaskKind::Exit) exits_[rank_of(plan, task).index()] = task;
    }
  }

  ProcessSignals map() && {
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      const TaskId task(static_cast<std::int64_t>(i));
      for (const std::size_t meaning : find_before(task)) meanings_[meaning].to.push_back(task);
      const sync::TaskWiring& own = wiring_.tasks[i];
      for (const std::optional<std::int32_t>& signal : {own.arrival, own.pulled}) {
        if (signal) meanings_[find(task, *signal)].to.push_back(task);
      }
    }
    for (Meaning& meaning : meanings_) {
      link(meaning);
      announce(meaning);
    }
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      const TaskId task(static_cast<std::int64_t>(i));
      if (is_own(task)) wait(task);
    }
    signals_.most_flags = std::ranges::max(next_flag_);
    return std::move(signals_);
  }

 private:
  // What signals in the pages of several ranks mean alike, who waits for it, and what this process
  // has of it.
  struct Meaning {
    std::optional<SignalKind> kind;
    std::int32_t index = 0;
    bool is_behind_put = false;
    std::vector<TaskId> from;
    std::vector<TaskId> to = {};
    std::int32_t raised = -1;              // signal
    std::vector<std::int32_t> waits = {};  // signals
  };

  using Key = std::tuple<std::optional<SignalKind>, bool, std::int32_t, std::vector<TaskId>>;

  [[nodiscard]] int process_of(TaskId task) const {
    return partition_.process_of(rank_of(plan_, task));
  }
  [[nodiscard]] bool is_own(TaskId task) const { return process_of(task) == partition_.process; }

  [[nodiscard]] std::map<int, std::vector<TaskId>> split(const std::vector<TaskId>& tasks) const {
    std::map<int, std::vector<TaskId>> by_process;
    for (const TaskId task : tasks) by_process[process_of(task)].push_back(task);
    return by_process;
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
  void link(Meaning& meaning) {
    const auto waiting = split(meaning.to);
    std::vector<std::int32_t> queues;
    if (const auto own = waiting.find(partition_.process); own != waiting.end()) {
      for (const TaskId task : own->second) {
        const std::int32_t queue = plan_.tasks[task.index()].queue.value;
        if (std::ranges::find(queues, queue) == queues.end()) queues.push_back(queue);
      }
    }
    for (auto& [process, producers] : split(meaning.from)) {
      const bool is_raised = process == partition_.process;
      ProcessSignal signal{.kind = meaning.kind,
                           .index = meaning.index,
                           .producers = std::move(producers),
                           .waiters = queues,
                           .is_behind_put = meaning.is_behind_put};
      if (is_raised) signal.arrivals = std::ssize(signal.producers);
      for (const auto& [other, tasks] : waiting) {
        if (other == process) continue;
        const std::int32_t flag = next_flag_[static_cast<std::size_t>(other)]++;
        if (is_raised) signal.outgoing.push_back({.process = other, .flag = flag});
        if (other == partition_.process) signal.flag = flag;
      }
      if (!is_raised && queues.empty()) continue;
      const auto number = static_cast<std::int32_t>(signals_.signals.size());
      if (is_raised) meaning.raised = number;
      if (!queues.empty()) meaning.waits.push_back(number);
      signals_.signals.push_back(std::move(signal));
    }
  }

  void announce(const Meaning& meaning) {
    for (const TaskId task : meaning.from) {
      if (!is_own(task)) continue;
      if (meaning.kind == SignalKind::Arrival) {
        signals_.collectives[task].arrival = meaning.raised;
      } else if (meaning.kind == SignalKind::Pulled) {
        signals_.collectives[task].pulled = meaning.raised;
      } else {
        signals_.raises[task.index()].push_back(meaning.raised);
      }
    }
  }

  void wait(TaskId task) {
    std::vector<std::int32_t>& waits = signals_.waits[task.index()];
    for (const std::size_t meaning : find_before(task)) {
      waits.insert(waits.end(), meanings_[meaning].waits.begin(), meanings_[meaning].waits.end());
    }
    const sync::TaskWiring& own = wiring_.tasks[task.index()];
    if (!own.arrival) return;
    signals_.collectives[task].arrived = meanings_[find(task, *own.arrival)].waits;
    signals_.collectives[task].left = meanings_[find(task, *own.pulled)].waits;
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

ProcessSignals map_signals(const Plan& plan, const Partition& partition) {
  return SignalMapper(plan, partition).map();
}

bool is_far_put(const Plan& plan, const Partition& partition, TaskId task) {
  if (!sync::goes_out(plan, task)) return false;
  const RankId there = destination_of(plan, plan.tasks[task.index()]);
  return partition.host_of(partition.process_of(there)) !=
         partition.host_of(partition.process_of(rank_of(plan, task)));
}

}  // namespace harpe::cpu
