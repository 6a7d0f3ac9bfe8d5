#include <algorithm>
#include <set>
#include <utility>

#include "launch/passes.h"
#include "plan/refs.h"

namespace harpe::launch {
namespace {

// A total of partial states: sources in the plan's order, and where it goes.
struct Total {
  struct Source {
    LaidRef ref;
    std::optional<std::int32_t> signal;  // that says it has arrived; none where no single one does
  };
  std::vector<Source> sources;
  std::int64_t elements = 0;

  [[nodiscard]] bool has(const Place& place) const {
    return std::ranges::any_of(sources, [&](const Source& source) {
      return source.ref.alloc == place.alloc && source.ref.find(place.span) != nullptr;
    });
  }
};

class HomeAdder {
 public:
  explicit HomeAdder(Draft& draft) : draft_(draft) {}

  void add(std::size_t at) {
    Step& step = draft_.steps[at];
    const std::optional<TaskId> next = draft_.next(step.launch.does.back());
    if (!next || !is_total(*next)) return;
    const Total total = total_of(*next);
    Kernel kernel = step.launch.kernels[0];
    const Kernel& own = step.launch.kernels.back();  // what stays, else all that is sent
    std::set<std::int32_t> awaited;
    std::int64_t left = total.elements;
    const auto offset = static_cast<std::int32_t>(kernel.arrivals.size());
    for (Panel panel : own.panels) {
      const std::optional<DType> operands = draft_.operand_type(own, panel);
      if (!step.has_staying) {
        if (!total.has(panel.stores.front())) continue;
        panel = {.stores = panel.stores};  // what was stored here, and nothing that it makes anew
      }
      left -= count_elements(panel.stores.front().span);
      if (!take(*next, total, operands, panel, awaited)) return;
      for (std::int32_t& met : panel.meets) met += offset;
      kernel.panels.push_back(std::move(panel));
    }
    if (step.has_staying) {
      kernel.arrivals.insert(kernel.arrivals.end(), own.arrivals.begin(), own.arrivals.end());
    }
    const std::vector<std::int32_t>& waits = draft_.wiring_of(*next).waits;
    const auto others = std::ranges::count_if(
        waits, [&](std::int32_t signal) { return !awaited.contains(signal); });
    if (left != 0) return draft_.refuse(*next, Reason::NotWhole, next->value);
    if (others > 0) return draft_.refuse(*next, Reason::OtherWaits, next->value, others);
    Launch proposed = proposal(step.launch);
    proposed.does.push_back(*next);
    if (!draft_.offers.choose(proposed, kernel)) {
      return draft_.refuse(*next, Reason::NoKernel, static_cast<std::int64_t>(kernel.panels.size()),
                           static_cast<std::int64_t>(kernel.arrivals.size()));
    }
    step.launch.kernels = {std::move(kernel)};
    step.has_staying = false;
    draft_.join(at, draft_.step_at[next->index()]);
    draft_.applied(*next);
  }

 private:
  [[nodiscard]] bool is_total(TaskId finalise) {
    const Task& task = draft_.task(finalise);
    if (task.kind != TaskKind::Finalise || task.writes.size() != 1) return false;
    if (draft_.target.shares_gpus) {
      draft_.refuse(finalise, Reason::SharedGpus);
      return false;
    }
    const auto others = static_cast<std::int64_t>(draft_.wiring_of(finalise).after.size());
    if (others > 0) draft_.refuse(finalise, Reason::BehindOtherQueue, finalise.value, others);
    return others == 0;
  }

  [[nodiscard]] Total total_of(TaskId finalise) {
    const Task& task = draft_.task(finalise);
    Total total{.sources = {}, .elements = draft_.layouts.of(task.writes.front()).elements()};
    for (const Ref& ref : task.reads) {
      total.sources.push_back({.ref = draft_.layouts.of(ref), .signal = signal_of(finalise, ref)});
    }
    return total;
  }

  // The signal of the total's that says the source has arrived; none where several say so.
  [[nodiscard]] std::optional<std::int32_t> signal_of(TaskId finalise, const Ref& ref) const {
    const auto& page = draft_.wiring.pages[rank_of(draft_.plan, finalise).index()];
    std::optional<std::int32_t> found;
    for (const std::int32_t signal : draft_.wiring_of(finalise).waits) {
      const sync::PageSignal& what = page[static_cast<std::size_t>(signal)];
      const bool fills = std::ranges::any_of(what.producers, [&](TaskId from) {
        return std::ranges::any_of(draft_.task(from).writes,
                                   [&](const Ref& to) { return meet(to, ref); });
      });
      if (!fills) continue;
      if (found) return std::nullopt;
      found = signal;
    }
    return found;
  }

  // The panel with the other sources as addends, stored where the total goes. Of one that makes
  // nothing its own is an addend too, in its place.
  [[nodiscard]] bool take(TaskId finalise, const Total& total, std::optional<DType> operands,
                          Panel& panel, std::set<std::int32_t>& awaited) {
    const Place own = panel.stores.front();
    if (!total.has(own)) return refused(finalise, Reason::NotWhole);
    const RankId rank = rank_of(draft_.plan, finalise);
    for (std::size_t i = 0; i < total.sources.size(); ++i) {
      const Total::Source& source = total.sources[i];
      if (source.ref.find(own.span) == nullptr) return refused(finalise, Reason::NotWhole);
      if (source.ref.alloc == own.alloc) {
        if (panel.meets.empty()) panel.addends.push_back({.reads = own, .when = {}});
        continue;
      }
      if (draft_.dtype_of(source.ref.alloc) != operands)
        return refused(finalise, Reason::OtherType);
      if (!source.signal) {
        draft_.refuse(finalise, Reason::UnknownAddend, finalise.value,
                      static_cast<std::int64_t>(i));
        return false;
      }
      awaited.insert(*source.signal);
      panel.addends.push_back({.reads = {.alloc = source.ref.alloc, .span = own.span},
                               .when = draft_.signal_id(rank, *source.signal)});
    }
    const AllocId home = draft_.task(finalise).writes.front().alloc;
    panel.dtype = draft_.dtype_of(home);
    if (panel.dtype != operands && panel.dtype != DType::F32) {
      return refused(finalise, Reason::OtherType);
    }
    panel.stores = {{.alloc = home, .span = own.span}};
    return true;
  }

  bool refused(TaskId finalise, Reason reason) {
    draft_.refuse(finalise, reason, finalise.value);
    return false;
  }

  Draft& draft_;
};

}  // namespace

void add_at_home(Draft& draft) {
  HomeAdder adder(draft);
  for (std::size_t at = 0; at < draft.steps.size(); ++at) {
    if (!draft.steps[at].is_joined && draft.steps[at].stores_at_peers) adder.add(at);
  }
}

}  // namespace harpe::launch
