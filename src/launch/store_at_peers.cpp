#include <algorithm>
#include <iterator>
#include <utility>

#include "launch/cut_panels.h"
#include "launch/join.h"
#include "launch/passes.h"
#include "plan/refs.h"

namespace harpe::launch {
namespace {

// A copy right behind a GEMM: which elements it moves, from where to where. Several copies may move
// the same elements: each then has a panel that stores them, and these panels meet the same
// arrivals.
struct Transfer {
  struct Move {
    LaidRef from;
    AllocId to;
  };
  TaskId task;
  std::vector<Move> moves;
  std::optional<std::int32_t> fused_store;
  std::int64_t left = 0;  // elements that no panel stores yet

  // Where the copy moves the place; none where it does not move it.
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
    Parts parts;
    if (!split(copies, step.launch.kernels.front(), parts)) return;
    Launch proposed = proposal(step.launch);
    proposed.does.insert(proposed.does.end(), copies.begin(), copies.end());
    const auto can_do = [&](Kernel& kernel) {
      return draft_.offers.choose(proposed, kernel).has_value();
    };
    if (!std::ranges::all_of(parts.kernels, can_do)) {
      const Kernel& first = parts.kernels.front();
      return draft_.refuse(proposed.does.front(), Reason::NoKernel,
                           static_cast<std::int64_t>(first.panels.size()),
                           static_cast<std::int64_t>(first.arrivals.size()));
    }
    step.launch.kernels = std::move(parts.kernels);
    step.staying = parts.staying;
    step.stores_at_peers = true;
    accept(at, copies);
  }

 private:
  // The kernels that replace one kernel.
  struct Parts {
    std::vector<Kernel> kernels;  // the first has the panels that are sent
    Staying staying = Staying::None;
  };

  [[nodiscard]] std::vector<TaskId> copies_behind(TaskId last) {
    std::vector<TaskId> copies;
    for (auto next = draft_.next(last); next && can_store_for(draft_, *next);
         next = draft_.next(*next)) {
      copies.push_back(*next);
    }
    for (std::size_t i = 0; i < copies.size();) {
      if (are_sole_readers(copies, copies[i])) {
        ++i;
        continue;
      }
      draft_.refuse(copies[i], Reason::OtherReaders, copies[i].value);
      copies.resize(i);  // a copy before this one may share its source
      i = 0;
    }
    return copies;
  }

  // True if only these copies read what this copy reads.
  [[nodiscard]] bool are_sole_readers(const std::vector<TaskId>& copies, TaskId copy) const {
    return std::ranges::all_of(draft_.task(copy).reads, [&](const Ref& ref) {
      return std::ranges::all_of(draft_.readers[ref.alloc.index()], [&](TaskId other) {
        const auto reads = [&](const Ref& read) { return meet(ref, read); };
        return std::ranges::count(copies, other) > 0 ||
               std::ranges::none_of(draft_.task(other).reads, reads);
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

  // The panels, cut where transfers begin or end.
  [[nodiscard]] std::optional<std::vector<Panel>> cut(const std::vector<Panel>& panels,
                                                      const std::vector<Transfer>& transfers) {
    std::vector<Panel> parts;
    for (const Panel& panel : panels) {
      std::vector<Span> boxes;
      for (const Transfer& transfer : transfers) {
        for (const Transfer::Move& move : transfer.moves) {
          if (panel.stores.empty() || move.from.alloc != panel.stores.front().alloc) continue;
          std::ranges::move(move.from.spans(), std::back_inserter(boxes));
        }
      }
      if (boxes.empty()) {
        parts.push_back(panel);
        continue;
      }
      std::optional<std::vector<Panel>> cut = cut_panel(draft_, panel, boxes);
      if (!cut) return std::nullopt;
      std::ranges::move(*cut, std::back_inserter(parts));
    }
    return parts;
  }

  // Makes kernels that do what `kernel` does and store what all copies move; false where that is
  // impossible. Parts of a panel that was cut stay in one kernel.
  [[nodiscard]] bool split(const std::vector<TaskId>& copies, const Kernel& kernel, Parts& parts) {
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
    const std::optional<std::vector<Panel>> panels = cut(kernel.panels, transfers);
    if (!panels) return refused(copies.front(), Reason::NotWhole);
    const bool is_cut = panels->size() > kernel.panels.size();
    std::vector<Panel> sent;
    std::vector<Panel> kept;
    std::size_t behind = 0;  // number of sent panels before the last one that stays
    for (const Panel& from : *panels) {
      if (from.stores.empty()) return refused(copies.front(), Reason::NotWhole);
      if (from.adds || !is_state(from)) return refused(copies.front(), Reason::AddsUp);
      const std::size_t before = sent.size();
      for (Transfer& transfer : transfers) {
        if (!transfer.take(from.stores.front())) continue;
        sent.push_back(from);
        if (!send(kernel, transfer, sent.back())) return refused(transfer.task, Reason::OtherType);
      }
      if (sent.size() > before) continue;
      kept.push_back(from);
      behind = before;
    }
    const auto rest =
        std::ranges::find_if(transfers, [](const Transfer& one) { return one.left != 0; });
    if (rest != transfers.end()) return refused(rest->task, Reason::NotWhole);
    // The sent panels behind the last one that stays come first.
    std::ranges::rotate(sent, sent.begin() + static_cast<std::ptrdiff_t>(behind));
    if (!kept.empty()) parts.staying = is_cut ? Staying::Inside : Staying::Apart;
    if (parts.staying == Staying::Inside) {
      std::ranges::move(kept, std::back_inserter(sent));
    }
    parts.kernels.push_back(with_panels(kernel, std::move(sent)));
    parts.kernels.back().fused_stores = std::move(raises);
    if (parts.staying == Staying::Apart) {
      parts.kernels.push_back(with_panels(kernel, std::move(kept)));
    }
    return true;
  }

  // A sum in f32, or one kept in 16 bits because all its readers round it.
  [[nodiscard]] bool is_state(const Panel& panel) const {
    return panel.dtype == DType::F32 ||
           std::ranges::count(draft_.out.partials16, panel.stores.front().alloc) > 0;
  }

  // A sum is sent in the type of the operands, a state of several parts in its own type.
  [[nodiscard]] bool send(const Kernel& kernel, Transfer& transfer, Panel& panel) const {
    const bool is_one = panel.stores.size() == 1;
    const std::optional<DType> sent =
        is_one ? draft_.operand_type(kernel, panel) : std::optional(panel.dtype);
    for (Place& stored : panel.stores) {
      const std::optional<Place> place = transfer.take(stored);
      if (!place || !sent || draft_.dtype_of(place->alloc) != *sent) return false;
      transfer.left -= count_elements(place->span);
      stored = *place;
    }
    panel.dtype = *sent;
    panel.fused_store = transfer.fused_store;
    return true;
  }

  bool refused(TaskId copy, Reason reason) {
    draft_.refuse(copy, reason, copy.value);
    return false;
  }

  void accept(std::size_t at, const std::vector<TaskId>& copies) {
    forget_states(at);
    take_over(draft_, at, copies);
  }

  // Removes states from `partials16` that the launch's tasks made and its kernels do not store any
  // more.
  void forget_states(std::size_t at) {
    const Launch& launch = draft_.steps[at].launch;
    const auto is_stored = [&](AllocId state) {
      return std::ranges::any_of(launch.kernels, [&](const Kernel& kernel) {
        return std::ranges::any_of(kernel.panels, [&](const Panel& panel) {
          return std::ranges::count(panel.stores, state, &Place::alloc) > 0;
        });
      });
    };
    std::erase_if(draft_.out.partials16, [&](AllocId state) {
      const std::vector<TaskId>& writers = draft_.writers[state.index()];
      const bool is_made_here = std::ranges::all_of(
          writers, [&](TaskId task) { return std::ranges::count(launch.does, task) > 0; });
      return is_made_here && !is_stored(state);
    });
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
