#include "exec/cpu/faults.h"

#include <algorithm>
#include <limits>
#include <map>

#include "exec/describe.h"

namespace harpe::cpu {
namespace {

using launch::SignalKind;

// Steps from a queue's head back to its cause: 0 for the head itself (its worker has ended), 1 for
// a signal that a finished task did not raise, n+1 for a task in a queue at n. Queues of other
// processes count as kOthers, because their causes are unknown here. Cycles have no cause.
constexpr int kOthers = 1;
constexpr int kNoCause = std::numeric_limits<int>::max() - 1;

// "process 3 waited 1500 ms for remote completion of 1 operation of process 2".
std::string describe(const transport::TransportError& error) {
  const std::string about = error.what + " of process " + std::to_string(error.peer);
  const std::string who = "process " + std::to_string(error.rank);
  switch (error.kind) {
    case transport::Failure::Expired:
      return who + " waited " + std::to_string(error.elapsed.count()) + " ms for " + about;
    case transport::Failure::PeerLost:
      return who + " lost process " + std::to_string(error.peer) + ": " + error.what;
    case transport::Failure::Malformed:
      break;
  }
  return who + " refuses " + about + ": " + error.reason;
}

class Diagnosis {
 public:
  Diagnosis(const Plan& plan, const Blocks& blocks, const Marking& marking,
            const RunOutcome& outcome)
      : plan_(plan),
        blocks_(blocks),
        marking_(marking),
        outcome_(outcome),
        distances_(static_cast<std::size_t>(marking.queues()), kNoCause) {
    for (const std::int32_t queue : outcome.lost) distances_[static_cast<std::size_t>(queue)] = 0;
    // Shortest distances by relaxation: queues may wait for each other in any pattern, cycles
    // included.
    for (bool changed = true; changed;) {
      changed = false;
      for (std::int32_t queue = 0; queue < marking_.queues(); ++queue) changed |= relax(queue);
    }
  }

  FaultReport report() {
    struct Candidate {
      int distance;
      RankId rank;
      std::int32_t queue;
      auto operator<=>(const Candidate&) const = default;
    };
    std::map<RankId, Candidate> nearest;
    for (std::int32_t queue = 0; queue < marking_.queues(); ++queue) {
      if (marking_.is_finished(queue)) continue;
      const RankId rank = plan_.queues[static_cast<std::size_t>(queue)].rank;
      const Candidate candidate = {.distance = distance(queue), .rank = rank, .queue = queue};
      const auto [entry, is_new] = nearest.try_emplace(rank, candidate);
      if (!is_new) entry->second = std::min(entry->second, candidate);
    }
    std::vector<Candidate> order;
    order.reserve(nearest.size());
    for (const auto& [rank, candidate] : nearest) order.push_back(candidate);
    std::ranges::sort(order);
    FaultReport faults;
    for (const Candidate& candidate : order) faults.push_back(fault_of(candidate.queue));
    return faults;
  }

 private:
  [[nodiscard]] bool is_lost(std::int32_t queue) const {
    return std::ranges::find(outcome_.lost, queue) != outcome_.lost.end();
  }

  // The producer whose queue is nearest to a cause, among those that have not run; if all have run,
  // the first one, whose signal is missing.
  [[nodiscard]] std::pair<int, TaskId> producer_of(std::int32_t queue,
                                                   const Marking::Hindrance& hindrance) const {
    const ProcessSignal& signal = *hindrance.signal;
    std::pair<int, TaskId> nearest = {kNoCause, signal.producers.front().task};
    bool all_have_run = true;
    for (const Producer& producer : signal.producers) {
      const std::int32_t other = producer.step.queue;
      if (marking_.has_run(producer.step, hindrance.epoch)) continue;
      all_have_run = false;
      nearest = std::min(nearest, {other == queue ? kNoCause : distance(other), producer.task});
    }
    if (all_have_run) nearest.first = 0;
    return nearest;
  }

  [[nodiscard]] int distance(std::int32_t queue) const {
    return marking_.is_own(queue) ? distances_[static_cast<std::size_t>(queue)] : kOthers;
  }

  // Returns true if a shorter distance was found.
  bool relax(std::int32_t queue) {
    if (marking_.is_finished(queue) || is_lost(queue)) return false;
    const std::optional<Marking::Hindrance> hindrance = marking_.hindrance(queue);
    if (!hindrance) return false;
    const int before = producer_of(queue, *hindrance).first;
    if (before == kNoCause || before + 1 >= distance(queue)) return false;
    distances_[static_cast<std::size_t>(queue)] = before + 1;
    return true;
  }

  [[nodiscard]] std::string name_of(const ProcessSignal& signal) const {
    const std::string index = std::to_string(signal.index);
    const auto at = static_cast<std::size_t>(signal.index);
    if (!signal.kind) {
      const Task& task = plan_.tasks[at];
      if (task.kind != TaskKind::Entry) return "event of task " + index;
      return "entry of rank " + std::to_string(rank_of(plan_, signal.producers.front().task).value);
    }
    switch (*signal.kind) {
      case SignalKind::Arrival:
        return "arrivals at collective " + index;
      case SignalKind::Pulled:
        return "departures from collective " + index;
      case SignalKind::Credit:
        return "ends of the execution before";
      case SignalKind::Barrier:
        return plan_.barriers[at].flag < 0 ? "barrier " + index
                                           : "counter " + std::to_string(plan_.barriers[at].flag);
      default:  // Sync: no launch here lands puts
        break;
    }
    const Sync& sync = plan_.syncs[at];
    return std::string(print(sync.kind)) + " " + std::to_string(sync.flag) + " of rank " +
           std::to_string(rank_of(plan_, sync.to).value);
  }

  [[nodiscard]] Fault fault_of(std::int32_t queue) const {
    const TaskId head = marking_.head(queue);
    Fault fault{.kind = FaultKind::PeerFaulted,
                .rank = plan_.queues[static_cast<std::size_t>(queue)].rank,
                .task = head,
                .task_text = describe(plan_, blocks_, head),
                .signal = "",
                .producer = {},
                .producer_rank = {},
                .producer_text = "",
                .elapsed = outcome_.idle};
    if (is_lost(queue)) fault.kind = FaultKind::WorkerLost;
    const std::optional<Marking::Hindrance> hindrance = marking_.hindrance(queue);
    if (is_lost(queue) || !hindrance) return fault;
    fault.kind = outcome_.is_told ? FaultKind::WaitGivenUp : FaultKind::WaitTimedOut;
    fault.signal = name_of(*hindrance->signal);
    fault.expected = hindrance->epoch * hindrance->signal->arrivals;
    fault.observed = hindrance->observed;
    fault.producer = producer_of(queue, *hindrance).second;
    fault.producer_rank = rank_of(plan_, fault.producer);
    fault.producer_text = describe(plan_, blocks_, fault.producer);
    return fault;
  }

  const Plan& plan_;
  const Blocks& blocks_;
  const Marking& marking_;
  const RunOutcome& outcome_;
  std::vector<int> distances_;  // per queue
};

}  // namespace

FaultReport collect_faults(const Plan& plan, const Blocks& blocks, const Marking& marking,
                           const RunOutcome& outcome) {
  FaultReport report = Diagnosis(plan, blocks, marking, outcome).report();
  if (!outcome.network) return report;
  Fault failed;
  failed.kind = FaultKind::NetworkFailed;
  failed.rank = report.empty() ? RankId(0) : report.front().rank;
  failed.signal = describe(*outcome.network);
  report.insert(report.begin(), failed);
  return report;
}

}  // namespace harpe::cpu
