#include "exec/cuda/executor/gpu_faults.h"

#include <algorithm>
#include <tuple>

#include "exec/describe.h"

namespace harpe::cuda {
namespace {

class Diagnosis {
 public:
  Diagnosis(const Plan& plan, const Blocks& blocks, const Wiring& wiring, const Peers& peers,
            const std::vector<RankEnd>& ends)
      : plan_(plan), blocks_(blocks), wiring_(wiring), ends_(ends) {
    for (int rank = 0; rank < peers.ranks(); ++rank) {
      const bool failed = ends[static_cast<std::size_t>(rank)].has_value();
      // A GPU that failed answers no more questions.
      records_.push_back(failed ? std::nullopt : peers.page(rank).fault());
      const Checked<bool> poisoned = failed ? Checked<bool>(false) : peers.page(rank).is_poisoned();
      poisoned_.push_back(poisoned.ok() && *poisoned);
    }
  }

  FaultReport report() const {
    std::vector<std::pair<int, Fault>> found;
    for (std::size_t rank = 0; rank < records_.size(); ++rank) {
      if (ends_[rank]) {
        found.emplace_back(0, failed(rank));
      } else if (records_[rank]) {
        const Fault fault = expired(rank);
        const bool is_root = !fault.producer_rank.valid() || !has_fault(fault.producer_rank);
        found.emplace_back(is_root ? 1 : 2, fault);
      } else if (poisoned_[rank]) {
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
    return ends_[rank.index()].has_value() || records_[rank.index()].has_value();
  }

  [[nodiscard]] static RankId id_of(std::size_t rank) {
    return RankId(static_cast<std::int64_t>(rank));
  }

  [[nodiscard]] Fault failed(std::size_t rank) const {
    Fault fault;
    fault.kind = FaultKind::DeviceFailed;
    fault.rank = id_of(rank);
    fault.signal = ends_[rank]->call + ": " + ends_[rank]->name + ", " + ends_[rank]->reason;
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
    const device::FaultRecord& record = *records_[rank];
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

  // Of several, one on a rank that says nothing itself: the others are waiting too.
  [[nodiscard]] TaskId producer_of(const Word& word, std::size_t waiter) const {
    const auto silent = [&](TaskId task) {
      const RankId rank = rank_of(plan_, task);
      return rank.index() != waiter && !has_fault(rank);
    };
    const auto found = std::ranges::find_if(word.producers, silent);
    if (found != word.producers.end()) return *found;
    const auto other = std::ranges::find_if(
        word.producers, [&](TaskId task) { return rank_of(plan_, task).index() != waiter; });
    return other != word.producers.end() ? *other : word.producers.front();
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
  const std::vector<RankEnd>& ends_;
  std::vector<std::optional<device::FaultRecord>> records_;
  std::vector<bool> poisoned_;
};

}  // namespace

FaultReport collect_gpu_faults(const Plan& plan, const Blocks& blocks, const Wiring& wiring,
                               const Peers& peers, const std::vector<RankEnd>& ends) {
  return Diagnosis(plan, blocks, wiring, peers, ends).report();
}

}  // namespace harpe::cuda
