#include "exec/cuda/executor/gpu_faults.h"

#include <algorithm>
#include <tuple>

#include "exec/describe.h"

namespace harpe::cuda {
namespace {

class Diagnosis {
 public:
  Diagnosis(const Plan& plan, const Blocks& blocks, const Wiring& wiring,
            const std::vector<RankReport>& reports)
      : plan_(plan), blocks_(blocks), wiring_(wiring), reports_(reports) {}

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
        const bool is_root = !fault.producer_rank.valid() || !has_fault(fault.producer_rank);
        found.emplace_back(is_root ? 1 : 2, fault);
      } else if (said.is_poisoned) {
        found.emplace_back(3, stopped(rank));
      }
    }
    std::ranges::stable_sort(found, {}, [](const auto& entry) { return entry.first; });
    FaultReport report;
    for (auto& [order, fault] : found) report.push_back(std::move(fault));
    return report;
  }

 private:
  [[nodiscard]] bool has_fault(RankId rank) const {
    const RankReport& said = reports_[rank.index()];
    return said.end || said.record || said.is_lost;
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
    fault.task = wiring_.sequence[rank].front();
    fault.task_text = describe(plan_, blocks_, fault.task);
    return fault;
  }

  [[nodiscard]] Fault expired(std::size_t rank) const {
    const device::FaultRecord& record = *reports_[rank].record;
    Fault fault;
    fault.kind = FaultKind::WaitTimedOut;
    fault.rank = id_of(rank);
    fault.task = TaskId(static_cast<std::int64_t>(record.task));
    fault.task_text = describe(plan_, blocks_, fault.task);
    fault.expected = record.expected;
    fault.observed = record.seen;
    fault.elapsed = std::chrono::milliseconds(record.elapsed_ns / 1'000'000);
    const Word& word = wiring_.pages[rank][record.name];
    // A kernel that waits inside says its first task.
    if (word.kind == WordKind::Sync) {
      fault.task = plan_.syncs[static_cast<std::size_t>(word.index)].to;
      fault.task_text = describe(plan_, blocks_, fault.task);
    }
    fault.signal = name_of(word, rank);
    fault.producer = producer_of(word, rank);
    fault.producer_rank = rank_of(plan_, fault.producer);
    fault.producer_text = describe(plan_, blocks_, fault.producer);
    return fault;
  }

  // Of several, one of a rank that is lost, else of one that says nothing itself: the others are
  // waiting too.
  [[nodiscard]] TaskId producer_of(const Word& word, std::size_t waiter) const {
    const auto likely = [&](TaskId task) {
      const RankId rank = rank_of(plan_, task);
      if (rank.index() == waiter) return 3;
      if (reports_[rank.index()].is_lost) return 0;
      return has_fault(rank) ? 2 : 1;
    };
    return *std::ranges::min_element(word.producers, {}, likely);
  }

  [[nodiscard]] static std::string name_of(const Word& word, std::size_t rank) {
    const std::string index = std::to_string(word.index);
    const std::string of = " on rank " + std::to_string(rank);
    switch (word.kind) {
      case WordKind::Sync:
        return "flag of sync " + index + of;
      case WordKind::Barrier:
        return "counter of barrier " + index + of;
      case WordKind::Arrival:
        return "arrivals at collective " + index + of;
      case WordKind::Pulled:
        return "departures from collective " + index + of;
    }
    return index;
  }

  const Plan& plan_;
  const Blocks& blocks_;
  const Wiring& wiring_;
  const std::vector<RankReport>& reports_;
};

}  // namespace

RankReport report_of(const Peers& peers, int rank, RankEnd end) {
  // A GPU that failed answers no more questions.
  if (end) return {.end = std::move(end), .record = {}};
  const Checked<bool> poisoned = peers.page(rank).is_poisoned();
  return {.end = std::nullopt,
          .record = peers.page(rank).fault(),
          .is_poisoned = poisoned.ok() && *poisoned};
}

FaultReport collect_gpu_faults(const Plan& plan, const Blocks& blocks, const Wiring& wiring,
                               const std::vector<RankReport>& reports) {
  return Diagnosis(plan, blocks, wiring, reports).report();
}

}  // namespace harpe::cuda
