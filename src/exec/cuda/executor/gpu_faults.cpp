#include "exec/cuda/executor/gpu_faults.h"

#include <algorithm>
#include <set>

#include "exec/describe.h"

namespace harpe::cuda {
namespace {

using launch::Launch;
using launch::Signal;
using launch::SignalKind;

class Diagnosis {
 public:
  Diagnosis(const Plan& plan, const Blocks& blocks, const launch::LaunchPlan& launches,
            const std::vector<RankReport>& reports)
      : plan_(plan),
        blocks_(blocks),
        launches_(launches.launches),
        pages_(launches, plan.mesh.ranks()),
        reports_(reports) {}

  FaultReport report() const {
    std::vector<std::pair<int, Fault>> found;
    for (std::size_t rank = 0; rank < reports_.size(); ++rank) {
      const RankReport& said = reports_[rank];
      if (said.is_lost) {
        Fault fault;
        fault.kind = FaultKind::PeerLost;
        fault.rank = id_of(rank);
        found.emplace_back(0, fault);
      } else if (said.end) {
        found.emplace_back(0, failed(rank));
      } else if (said.record) {
        const Fault fault = expired(rank);
        const RankReport& other = reports_[fault.producer_rank.index()];
        const int doubt = other.is_poisoned && !other.record ? 2 : 1;
        const bool is_answer = fault.kind == FaultKind::WaitGivenUp;
        found.emplace_back(is_answer || is_explained(rank, fault.producer) ? 3 : doubt, fault);
      } else if (said.is_poisoned) {
        found.emplace_back(4, stopped(rank));
      }
    }
    std::ranges::stable_sort(found, {}, [](const auto& entry) { return entry.first; });
    FaultReport report;
    for (auto& [order, fault] : found) report.push_back(std::move(fault));
    return report;
  }

 private:
  // The wait of a rank that expired.
  struct Stop {
    const Signal* signal = nullptr;
    TaskId task;
    std::uint32_t epoch = 0;
  };

  [[nodiscard]] Stop stop_of(std::size_t rank) const {
    const device::FaultRecord& record = *reports_[rank].record;
    const Signal& signal = pages_.page(id_of(rank))[record.name];
    Stop stop{.signal = &signal,
              .task = TaskId(static_cast<std::int64_t>(record.task)),
              .epoch = record.expected / static_cast<std::uint32_t>(signal.arrivals)};
    // A kernel that waits inside records its first task.
    if (signal.kind == SignalKind::Sync) {
      stop.task = plan_.syncs[static_cast<std::size_t>(signal.index)].to;
    }
    return stop;
  }

  // The stage of a task while it waits for such a signal, and the stage that it must complete to
  // raise one.
  [[nodiscard]] static int stage_of_wait(SignalKind kind) {
    if (kind == SignalKind::Arrival) return 1;
    return kind == SignalKind::Pulled ? 2 : 0;
  }
  [[nodiscard]] static int stage_of_raise(SignalKind kind) {
    if (kind == SignalKind::Arrival) return 1;
    return kind == SignalKind::Pulled ? 2 : 3;
  }

  // Whether the producer's own rank stopped before it could raise what `waiter` missed; then the
  // cause is elsewhere.
  [[nodiscard]] bool is_explained(std::size_t waiter, TaskId producer) const {
    const RankReport& said = reports_[rank_of(plan_, producer).index()];
    if (said.is_lost || said.end) return true;
    if (!said.record) return false;
    const Stop missed = stop_of(waiter);
    const Stop stop = stop_of(rank_of(plan_, producer).index());
    if (stop.epoch != missed.epoch) return stop.epoch < missed.epoch;
    if (stop.task == producer) {
      return stage_of_wait(stop.signal->kind) < stage_of_raise(missed.signal->kind);
    }
    return is_behind(producer, stop.task);
  }

  // Whether `task` waits for `other` of the same rank: it is behind it in its launch, or in a later
  // launch that waits for it.
  [[nodiscard]] bool is_behind(TaskId task, TaskId other) const {
    const auto does = [](TaskId wanted) {
      return [wanted](const Launch& launch) {
        return !launch.lands && std::ranges::find(launch.does, wanted) != launch.does.end();
      };
    };
    const auto first = std::ranges::find_if(launches_, does(other));
    const auto last = std::ranges::find_if(launches_, does(task));
    if (first == last) {
      return std::ranges::find(first->does, other) <= std::ranges::find(first->does, task);
    }
    std::set<std::int64_t> behind;  // indices of launches
    std::set<QueueId> queues = {first->queue};
    for (auto each = first; each != launches_.end() && each->rank == first->rank; ++each) {
      const bool is_after = std::ranges::any_of(
          each->after, [&](launch::LaunchId from) { return behind.contains(from.value); });
      if (!is_after && !queues.contains(each->queue)) continue;
      behind.insert(each - launches_.begin());
      queues.insert(each->queue);
    }
    return behind.contains(last - launches_.begin());
  }

  [[nodiscard]] static RankId id_of(std::size_t rank) {
    return RankId(static_cast<std::int64_t>(rank));
  }

  [[nodiscard]] Fault failed(std::size_t rank) const {
    Fault fault;
    fault.kind = FaultKind::DeviceFailed;
    fault.rank = id_of(rank);
    const CudaError& end = *reports_[rank].end;
    fault.signal = end.call + ": " + end.name + ", " + end.reason;
    return fault;
  }

  [[nodiscard]] Fault stopped(std::size_t rank) const {
    Fault fault;
    fault.kind = FaultKind::PeerFaulted;
    fault.rank = id_of(rank);
    fault.task = std::ranges::find(launches_, id_of(rank), &Launch::rank)->does.front();
    fault.task_text = describe(plan_, blocks_, fault.task);
    return fault;
  }

  [[nodiscard]] Fault expired(std::size_t rank) const {
    const device::FaultRecord& record = *reports_[rank].record;
    Fault fault;
    fault.kind =
        record.state == device::kGivenUp ? FaultKind::WaitGivenUp : FaultKind::WaitTimedOut;
    fault.rank = id_of(rank);
    fault.task = stop_of(rank).task;
    fault.task_text = describe(plan_, blocks_, fault.task);
    fault.expected = record.expected;
    fault.observed = record.seen;
    fault.elapsed = std::chrono::milliseconds(record.elapsed_ns / 1'000'000);
    const Signal& signal = pages_.page(id_of(rank))[record.name];
    fault.signal = name_of(signal, rank);
    fault.producer = producer_of(signal, rank);
    fault.producer_rank = rank_of(plan_, fault.producer);
    fault.producer_text = describe(plan_, blocks_, fault.producer);
    return fault;
  }

  // The likeliest of several producers, in this order: of a lost rank; of a rank without fault; of
  // a rank that stopped elsewhere; of a poisoned one; of one that misses the same signal; of one
  // whose own stop explains it; the waiter itself.
  [[nodiscard]] TaskId producer_of(const Signal& signal, std::size_t waiter) const {
    const auto doubt = [&](TaskId task) {
      const std::size_t rank = rank_of(plan_, task).index();
      const RankReport& said = reports_[rank];
      if (rank == waiter) return 6;
      if (said.is_lost || said.end) return 0;
      if (!said.record) return said.is_poisoned ? 3 : 1;
      if (is_explained(waiter, task)) return 5;
      const Signal& missed = *stop_of(rank).signal;
      return missed.kind == signal.kind && missed.index == signal.index ? 4 : 2;
    };
    return *std::ranges::min_element(signal.from, {}, doubt);
  }

  [[nodiscard]] static std::string name_of(const Signal& signal, std::size_t rank) {
    const std::string index = std::to_string(signal.index);
    const std::string of = " on rank " + std::to_string(rank);
    switch (signal.kind) {
      case SignalKind::Sync:
        return "flag of sync " + index + of;
      case SignalKind::Barrier:
        return "counter of barrier " + index + of;
      case SignalKind::Arrival:
        return "arrivals at collective " + index + of;
      case SignalKind::Pulled:
        return "departures from collective " + index + of;
      case SignalKind::Credit:
        return "end of the execution before on rank " + index + ", told to rank " +
               std::to_string(rank);
      case SignalKind::Arrived:
        return "arrival of put " + index + of;
      case SignalKind::Taken:
        return "word that put " + index + " was taken," + of;
      case SignalKind::RingSpace:
        return "room in the ring to rank " + index + of;
    }
    return index;
  }

  const Plan& plan_;
  const Blocks& blocks_;
  const std::vector<Launch>& launches_;
  SignalPages pages_;
  const std::vector<RankReport>& reports_;
};

}  // namespace

RankReport report_of(const Peers& peers, int rank, RankEnd end) {
  // A failed GPU answers no further calls.
  if (end) return {.end = std::move(end), .record = {}};
  const Checked<bool> poisoned = peers.page(rank).is_poisoned();
  return {.end = std::nullopt,
          .record = peers.page(rank).fault(),
          .is_poisoned = poisoned.ok() && *poisoned};
}

FaultReport collect_gpu_faults(const Plan& plan, const Blocks& blocks,
                               const launch::LaunchPlan& launches,
                               const std::vector<RankReport>& reports) {
  return Diagnosis(plan, blocks, launches, reports).report();
}

}  // namespace harpe::cuda
