#include "exec/cpu/signals.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "exec/processes/put_orders.h"
#include "plan/refs.h"
#include "sync/nodes.h"

namespace harpe::cpu {
namespace {

using launch::SignalKind;
using processes::Partition;

class SignalMapper {
 public:
  SignalMapper(const Plan& plan, const LaunchSteps& steps, const Partition& partition)
      : plan_(plan),
        steps_(steps),
        partition_(partition),
        fences_(processes::find_fences(plan)),
        uses_(steps.signals.size()),
        next_flag_(static_cast<std::size_t>(partition.processes), partition.processes) {
    signals_.queues.resize(steps.queues.size());
    for (std::size_t queue = 0; queue < steps.queues.size(); ++queue) {
      signals_.queues[queue].resize(steps.queues[queue].size());
      for (std::size_t at = 0; at < steps.queues[queue].size(); ++at) {
        const StepPlace place = {.queue = static_cast<std::int32_t>(queue),
                                 .position = static_cast<std::int32_t>(at)};
        for (const std::int32_t wait : step(place).waits) use(wait).waiting.push_back(place);
        for (const SignalRaise& raise : step(place).raises) {
          use(raise.signal).raised.emplace_back(place, raise.adds);
        }
      }
    }
  }

  ProcessSignals map() && {
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      if (!uses_[i].waiting.empty()) add_meaning(static_cast<std::int32_t>(i));
    }
    for (const Meaning& meaning : meanings_) link(meaning);
    signals_.most_flags = std::ranges::max(next_flag_);
    return std::move(signals_);
  }

 private:
  using Raised = std::vector<std::pair<StepPlace, std::uint32_t>>;  // steps and what each adds
  struct Use {
    Raised raised;
    std::vector<StepPlace> waiting;
  };
  // Signals of several ranks' pages with one meaning, which the same steps raise. All that the
  // network raises behind one put are one, named for the first.
  struct Meaning {
    std::int32_t signal = 0;  // the first of them
    bool is_behind_put = false;
    std::vector<StepPlace> waiting;
  };
  using Key = std::tuple<std::optional<SignalKind>, bool, std::int32_t, std::int64_t, Raised>;

  [[nodiscard]] const Step& step(StepPlace place) const {
    return steps_
        .queues[static_cast<std::size_t>(place.queue)][static_cast<std::size_t>(place.position)];
  }
  [[nodiscard]] StepSignals& own_step(StepPlace place) {
    return signals_
        .queues[static_cast<std::size_t>(place.queue)][static_cast<std::size_t>(place.position)];
  }
  [[nodiscard]] Use& use(std::int32_t signal) { return uses_[static_cast<std::size_t>(signal)]; }
  [[nodiscard]] const StepSignal& signal_at(std::int32_t signal) const {
    return steps_.signals[static_cast<std::size_t>(signal)];
  }
  [[nodiscard]] int process_of(StepPlace place) const {
    return partition_.process_of(plan_.queues[static_cast<std::size_t>(place.queue)].rank);
  }
  [[nodiscard]] bool is_own(StepPlace place) const {
    return process_of(place) == partition_.process;
  }

  [[nodiscard]] bool is_behind_put(const StepSignal& signal) const {
    if (signal.kind != SignalKind::Sync || signal.from.empty()) return false;
    const TaskId put = signal.from.front();
    return fences_.contains(put) && is_far_put(plan_, partition_, put) &&
           destination_of(plan_, plan_.tasks[put.index()]) == signal.rank;
  }

  void add_meaning(std::int32_t signal) {
    const StepSignal& own = signal_at(signal);
    const Raised& raised = use(signal).raised;
    const bool is_behind = is_behind_put(own);
    const Key key(own.kind, is_behind, is_behind ? 0 : own.index, own.arrivals, raised);
    const auto [known, is_new] = numbers_.try_emplace(key, meanings_.size());
    if (is_new) meanings_.push_back({.signal = signal, .is_behind_put = is_behind, .waiting = {}});
    std::vector<StepPlace>& waiting = meanings_[known->second].waiting;
    waiting.insert(waiting.end(), use(signal).waiting.begin(), use(signal).waiting.end());
  }

  // The steps that raise it, by process; without any, the step of its first listed producer.
  [[nodiscard]] std::map<int, Raised> producers_of(const Meaning& meaning) {
    std::map<int, Raised> from;
    for (const auto& [place, adds] : use(meaning.signal).raised) {
      from[process_of(place)].emplace_back(place, adds);
    }
    if (!from.empty()) return from;
    const StepPlace end = steps_.ends[signal_at(meaning.signal).from.front().index()];
    from[process_of(end)] = {};
    return from;
  }

  // Makes a signal for each process with producers, and a flag for each other process that waits.
  void link(const Meaning& meaning) {
    const StepSignal& own = signal_at(meaning.signal);
    std::set<int> waiting;
    std::set<std::int32_t> queues;  // of this process
    for (const StepPlace place : meaning.waiting) {
      waiting.insert(process_of(place));
      if (is_own(place)) queues.insert(place.queue);
    }
    const std::map<int, Raised> from = producers_of(meaning);
    for (const auto& [process, raised] : from) {
      const bool is_raised = process == partition_.process;
      ProcessSignal signal{.kind = own.kind,
                           .index = own.index,
                           .producers = name_producers(own, raised),
                           .arrivals = is_raised ? arrivals_in(meaning, process) : 1,
                           .waiters = {queues.begin(), queues.end()},
                           .is_behind_put = meaning.is_behind_put};
      for (const int other : waiting) {
        if (other == process) continue;
        const std::int32_t flag = next_flag_[static_cast<std::size_t>(other)]++;
        if (is_raised) signal.outgoing.push_back({.process = other, .flag = flag});
        if (other == partition_.process) signal.flag = flag;
      }
      if (is_raised || !queues.empty()) add(meaning, std::move(signal), raised);
    }
  }

  // What a process's own producers add per execution: the arrivals that others do not add.
  [[nodiscard]] std::int64_t arrivals_in(const Meaning& meaning, int process) {
    std::int64_t arrivals = signal_at(meaning.signal).arrivals;
    for (const auto& [place, adds] : use(meaning.signal).raised) {
      if (process_of(place) != process) arrivals -= adds;
    }
    return arrivals;
  }

  [[nodiscard]] std::vector<Producer> name_producers(const StepSignal& signal,
                                                     const Raised& raised) const {
    std::vector<Producer> producers;
    for (const auto& [place, adds] : raised) {
      const auto is_there = [&](TaskId task) {
        return step(steps_.ends[task.index()]).launch == step(place).launch;
      };
      const auto task = std::ranges::find_if(signal.from, is_there);
      producers.push_back(
          {.task = task == signal.from.end() ? step(place).task : *task, .step = place});
    }
    for (std::size_t i = 0; raised.empty() && i < signal.from.size(); ++i) {
      producers.push_back({.task = signal.from[i], .step = steps_.ends[signal.from[i].index()]});
    }
    return producers;
  }

  void add(const Meaning& meaning, ProcessSignal signal, const Raised& raised) {
    const auto number = static_cast<std::int32_t>(signals_.signals.size());
    for (const StepPlace place : meaning.waiting) {
      if (is_own(place)) own_step(place).waits.push_back(number);
    }
    for (const auto& [place, adds] : raised) {
      if (is_own(place)) own_step(place).raises.push_back({.signal = number, .adds = adds});
    }
    signals_.signals.push_back(std::move(signal));
  }

  const Plan& plan_;
  const LaunchSteps& steps_;
  const Partition& partition_;
  std::map<TaskId, Fence> fences_;
  std::vector<Use> uses_;  // per signal of the steps
  std::vector<Meaning> meanings_;
  std::map<Key, std::size_t> numbers_;   // of meanings_
  std::vector<std::int32_t> next_flag_;  // of each process's page
  ProcessSignals signals_;
};

}  // namespace

ProcessSignals map_signals(const Plan& plan, const LaunchSteps& steps, const Partition& partition) {
  return SignalMapper(plan, steps, partition).map();
}

bool is_far_put(const Plan& plan, const Partition& partition, TaskId task) {
  if (!sync::goes_out(plan, task)) return false;
  const RankId there = destination_of(plan, plan.tasks[task.index()]);
  return partition.host_of(partition.process_of(there)) !=
         partition.host_of(partition.process_of(rank_of(plan, task)));
}

}  // namespace harpe::cpu
