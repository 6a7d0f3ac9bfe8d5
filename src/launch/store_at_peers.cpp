#include <algorithm>
#include <utility>

#include "launch/join.h"
#include "launch/passes.h"
#include "plan/refs.h"

namespace harpe::launch {
namespace {

// A copy right behind a GEMM: which elements it takes from where to where.
struct Transfer {
  struct Move {
    LaidRef from;
    AllocId to;
  };
  TaskId task;
  std::vector<Move> moves;
  std::optional<std::int32_t> fused_store;
  std::int64_t left = 0;  // elements that no panel stores yet

  // Where it takes the place; none where it does not.
  [[nodiscard]] std::optional<Place> take(const Place& place) const {
    for (const Move& move : moves) {
      if (move.from.alloc == place.alloc && move.from.find(place.span) != nullptr) {
        return Place{.alloc = move.to, .span = place.span};
      }
    }
    return std::nullopt;
  }
};

class PeerStorer {
 public:
  explicit PeerStorer(Draft& draft) : draft_(draft) {}

  void store(std::size_t at) {
    Step& step = draft_.steps[at];
    if (step.launch.kernels.size() != 1 || step.launch.kernels.front().panels.empty()) return;
    const std::vector<TaskId> copies = copies_behind(step.launch.does.back());
    if (copies.empty()) return;
    Kernel leaving;
    Kernel staying;
    if (!split(copies, step.launch.kernels.front(), leaving, staying)) return;
    Launch proposed = proposal(step.launch);
    proposed.does.insert(proposed.does.end(), copies.begin(), copies.end());
    const bool has_staying = !staying.panels.empty();
    if (!draft_.offers.choose(proposed, leaving) ||
        (has_staying && !draft_.offers.choose(proposed, staying))) {
      return draft_.refuse(proposed.does.front(), Reason::NoKernel,
                           static_cast<std::int64_t>(leaving.panels.size()),
                           static_cast<std::int64_t>(leaving.arrivals.size()));
    }
    step.launch.kernels = {std::move(leaving)};
    if (has_staying) step.launch.kernels.push_back(std::move(staying));
    step.has_staying = has_staying;
    accept(at, copies);
  }

 private:
  [[nodiscard]] std::vector<TaskId> copies_behind(TaskId last) {
    std::vector<TaskId> copies;
    for (auto next = draft_.next(last); next && can_leave(*next); next = draft_.next(*next)) {
      copies.push_back(*next);
    }
    return copies;
  }

  // A transfer of what no one else reads, which waits for beginnings alone, and for which one waits
  // at most.
  [[nodiscard]] bool can_leave(TaskId copy) {
    const Task& task = draft_.task(copy);
    const sync::TaskWiring& wiring = draft_.wiring_of(copy);
    if (task.kind != TaskKind::Copy || task.via != Via::Sm) return false;
    const bool fits = wiring.after.empty() && wiring.raises.size() <= 1 &&
                      std::ranges::none_of(wiring.raises, &sync::PageRaise::is_posted);
    if (!fits || !sync::waits_for_entries(draft_.plan, draft_.wiring, copy)) {
      draft_.refuse(copy, Reason::WaitsForMore, copy.value);
      return false;
    }
    const bool is_alone =
        std::ranges::all_of(task.reads, [&](const Ref& ref) { return is_sole_reader(copy, ref); });
    if (!is_alone) draft_.refuse(copy, Reason::OtherReaders, copy.value);
    return is_alone;
  }

  [[nodiscard]] bool is_sole_reader(TaskId copy, const Ref& ref) const {
    return std::ranges::all_of(draft_.readers[ref.alloc.index()], [&](TaskId other) {
      return other == copy || std::ranges::none_of(draft_.task(other).reads, [&](const Ref& read) {
               return meet(ref, read);
             });
    });
  }

  [[nodiscard]] std::optional<Transfer> transfer_of(TaskId copy) {
    const Task& task = draft_.task(copy);
    Transfer transfer{.task = copy, .moves = {}, .fused_store = {}};
    for (std::size_t i = 0; i < task.reads.size(); ++i) {
      const int buffer = draft_.layouts.buffer_of(task.reads[i].alloc);
      if (is_ragged(draft_.plan, draft_.blocks, buffer)) return std::nullopt;
      LaidRef from = draft_.layouts.of(task.reads[i]);
      transfer.left += from.elements();
      transfer.moves.push_back({.from = std::move(from), .to = task.writes[i].alloc});
    }
    return transfer;
  }

  // Whether `leaving` stores what all the copies move, and `staying` the rest.
  [[nodiscard]] bool split(const std::vector<TaskId>& copies, const Kernel& kernel, Kernel& leaving,
                           Kernel& staying) {
    std::vector<Transfer> transfers;
    std::vector<Raise> raises;
    for (const TaskId copy : copies) {
      std::optional<Transfer> transfer = transfer_of(copy);
      if (!transfer) return refused(copy, Reason::NotWhole);
      for (const sync::PageRaise& raise : draft_.wiring_of(copy).raises) {
        transfer->fused_store = static_cast<std::int32_t>(raises.size());
        raises.push_back(draft_.raise_of(raise));
      }
      transfers.push_back(*std::move(transfer));
    }
    std::vector<Panel> sent;
    std::vector<Panel> kept;
    std::size_t behind = 0;  // the last panel that stays
    for (const Panel& from : kernel.panels) {
      if (from.stores.empty()) return refused(copies.front(), Reason::NotWhole);
      if (from.adds || from.dtype != DType::F32) return refused(copies.front(), Reason::AddsUp);
      const auto mover = std::ranges::find_if(transfers, [&](const Transfer& transfer) {
        return transfer.take(from.stores.front()).has_value();
      });
      if (mover == transfers.end()) {
        kept.push_back(from);
        behind = sent.size();
        continue;
      }
      sent.push_back(from);
      if (!send(kernel, *mover, sent.back())) return refused(mover->task, Reason::OtherType);
    }
    const auto rest =
        std::ranges::find_if(transfers, [](const Transfer& one) { return one.left != 0; });
    if (rest != transfers.end()) return refused(rest->task, Reason::NotWhole);
    // Behind the last panel that stays comes the first to leave.
    std::ranges::rotate(sent, sent.begin() + static_cast<std::ptrdiff_t>(behind));
    staying = with_panels(kernel, std::move(kept));
    leaving = with_panels(kernel, std::move(sent));
    leaving.fused_stores = std::move(raises);
    return true;
  }

  // In the type of A.
  [[nodiscard]] bool send(const Kernel& kernel, Transfer& transfer, Panel& panel) const {
    const std::optional<DType> operands = draft_.operand_type(kernel, panel);
    const std::optional<Place> place = transfer.take(panel.stores.front());
    if (!operands || draft_.dtype_of(place->alloc) != *operands) return false;
    transfer.left -= count_elements(place->span);
    panel.stores = {*place};
    panel.dtype = *operands;
    panel.fused_store = transfer.fused_store;
    return true;
  }

  bool refused(TaskId copy, Reason reason) {
    draft_.refuse(copy, reason, copy.value);
    return false;
  }

  void accept(std::size_t at, const std::vector<TaskId>& copies) {
    for (const TaskId copy : copies) {
      const std::size_t joined = draft_.step_at[copy.index()];
      Launch& launch = draft_.steps[joined].launch;
      launch.raises.clear();
      std::vector<SignalId>& awaits = draft_.steps[at].launch.awaits;
      awaits.insert(awaits.end(), launch.awaits.begin(), launch.awaits.end());
      draft_.join(at, joined);
      draft_.applied(copy);
    }
  }

  Draft& draft_;
};

}  // namespace

void store_at_peers(Draft& draft) {
  PeerStorer storer(draft);
  for (std::size_t at = 0; at < draft.steps.size(); ++at) {
    if (!draft.steps[at].is_joined) storer.store(at);
  }
}

}  // namespace harpe::launch
