#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "launch/passes.h"
#include "plan/refs.h"

namespace harpe::launch {
namespace {

// A total of partial states: its sources in the plan's order, and its task.
struct Total {
  TaskId task;
  struct Source {
    std::vector<LaidRef> parts;          // one for a sum, or o and lse
    std::optional<std::int32_t> signal;  // of its arrival; none unless exactly one signal covers it

    // The source's places for the same spans; none where it lacks any of them.
    [[nodiscard]] std::optional<std::vector<Place>> find(const std::vector<Place>& places) const {
      if (places.size() != parts.size()) return std::nullopt;
      std::vector<Place> found;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if (parts[i].find(places[i].span) == nullptr) return std::nullopt;
        found.push_back({.alloc = parts[i].alloc, .span = places[i].span});
      }
      return found;
    }
  };
  std::vector<Source> sources;
  std::int64_t elements = 0;  // of the result's first part

  [[nodiscard]] bool has(const std::vector<Place>& places) const {
    return std::ranges::any_of(sources,
                               [&](const Source& source) { return source.find(places) == places; });
  }
};

class HomeAdder {
 public:
  explicit HomeAdder(Draft& draft) : draft_(draft) {}

  void add(std::size_t at) {
    Step& step = draft_.steps[at];
    const std::vector<Total> totals = totals_behind(step);
    if (totals.empty()) return;
    std::set<std::int32_t> awaited;
    std::optional<Kernel> kernel = with_totals(step, totals, awaited);
    if (!kernel || !await_addends_alone(totals, awaited)) return;
    Launch proposed = proposal(step.launch);
    for (const Total& total : totals) proposed.does.push_back(total.task);
    if (!draft_.offers.choose(proposed, *kernel)) {
      return draft_.refuse(totals.front().task, Reason::NoKernel, std::ssize(kernel->panels),
                           std::ssize(kernel->arrivals));
    }
    step.launch.kernels = {*std::move(kernel)};
    step.staying = Staying::None;
    for (const Total& total : totals) {
      draft_.join(at, draft_.step_at[total.task.index()]);
      draft_.applied(total.task);
    }
  }

 private:
  // Merges the step's kernels into one, whose panels add the sources of the totals and store the
  // results; none where the panels do not make all of the totals.
  [[nodiscard]] std::optional<Kernel> with_totals(const Step& step,
                                                  const std::vector<Total>& totals,
                                                  std::set<std::int32_t>& awaited) {
    Kernel kernel = step.launch.kernels.front();
    std::int64_t left = 0;
    for (const Total& total : totals) left += total.elements;
    const auto add_to = [&](const Kernel& of, Panel& panel, const Total& total) {
      const std::optional<DType> operands = draft_.operand_type(of, panel);
      if (step.staying == Staying::None) {
        panel = {.stores = panel.stores};  // an addend instead of a sum made again
      }
      left -= count_elements(panel.stores.front().span);
      return take(total, operands, panel, awaited);
    };
    if (step.staying == Staying::Inside) {
      for (Panel& panel : kernel.panels) {
        const Total* const total = find(totals, panel);
        if (total != nullptr && !add_to(kernel, panel, *total)) return std::nullopt;
      }
    } else {
      const Kernel& own = step.launch.kernels.back();  // the panels that stay, else all that are
                                                       // sent
      const auto offset = static_cast<std::int32_t>(kernel.arrivals.size());
      for (Panel panel : own.panels) {
        const Total* const total = find(totals, panel);
        if (step.staying == Staying::None && total == nullptr) continue;
        if (total == nullptr) return not_whole(totals);
        if (!add_to(own, panel, *total)) return std::nullopt;
        for (std::int32_t& met : panel.meets) met += offset;
        kernel.panels.push_back(std::move(panel));
      }
      if (step.staying == Staying::Apart) {
        kernel.arrivals.insert(kernel.arrivals.end(), own.arrivals.begin(), own.arrivals.end());
      }
    }
    if (left != 0) return not_whole(totals);
    return kernel;
  }

  [[nodiscard]] std::optional<Kernel> not_whole(const std::vector<Total>& totals) {
    (void)refused(totals.front().task, Reason::NotWhole);
    return std::nullopt;
  }

  [[nodiscard]] bool await_addends_alone(const std::vector<Total>& totals,
                                         const std::set<std::int32_t>& awaited) {
    for (const Total& total : totals) {
      const std::vector<std::int32_t>& waits = draft_.wiring_of(total.task).waits;
      const auto others = std::ranges::count_if(
          waits, [&](std::int32_t signal) { return !awaited.contains(signal); });
      if (others == 0) continue;
      draft_.refuse(total.task, Reason::OtherWaits, total.task.value, others);
      return false;
    }
    return true;
  }

  [[nodiscard]] static const Total* find(const std::vector<Total>& totals, const Panel& panel) {
    const auto found =
        std::ranges::find_if(totals, [&](const Total& one) { return one.has(panel.stores); });
    return found == totals.end() ? nullptr : &*found;
  }

  // The total right behind, and further totals that have a part of the kernels' results as a
  // source.
  [[nodiscard]] std::vector<Total> totals_behind(const Step& step) {
    std::vector<Total> totals;
    for (auto next = draft_.next(step.launch.does.back()); next && is_total(*next);
         next = draft_.next(*next)) {
      Total total = total_of(*next);
      const auto is_made_here = [&](const Kernel& kernel) {
        return std::ranges::any_of(kernel.panels,
                                   [&](const Panel& panel) { return total.has(panel.stores); });
      };
      if (!totals.empty() && std::ranges::none_of(step.launch.kernels, is_made_here)) break;
      totals.push_back(std::move(total));
    }
    return totals;
  }

  [[nodiscard]] bool is_total(TaskId finalise) {
    const Task& task = draft_.task(finalise);
    if (task.kind != TaskKind::Finalise || task.reads.size() % task.writes.size() != 0) {
      return false;
    }
    if (draft_.target.shares_sms) {
      draft_.refuse(finalise, Reason::SharedSms);
      return false;
    }
    const auto others = static_cast<std::int64_t>(draft_.wiring_of(finalise).after.size());
    if (others > 0) draft_.refuse(finalise, Reason::BehindOtherQueue, finalise.value, others);
    return others == 0;
  }

  [[nodiscard]] Total total_of(TaskId finalise) {
    const Task& task = draft_.task(finalise);
    Total total{.task = finalise,
                .sources = {},
                .elements = draft_.layouts.of(task.writes.front()).elements()};
    const std::size_t parts = task.writes.size();
    for (std::size_t first = 0; first < task.reads.size(); first += parts) {
      const std::span<const Ref> state = std::span(task.reads).subspan(first, parts);
      Total::Source& source = total.sources.emplace_back();
      for (const Ref& ref : state) source.parts.push_back(draft_.layouts.of(ref));
      source.signal = signal_of(finalise, state);
    }
    return total;
  }

  // The signal that the total waits for and that covers the source; none where there are several.
  [[nodiscard]] std::optional<std::int32_t> signal_of(TaskId finalise,
                                                      std::span<const Ref> state) const {
    const auto& page = draft_.wiring.pages[rank_of(draft_.plan, finalise).index()];
    std::optional<std::int32_t> found;
    for (const std::int32_t signal : draft_.wiring_of(finalise).waits) {
      const sync::PageSignal& what = page[static_cast<std::size_t>(signal)];
      const bool fills = std::ranges::any_of(what.producers, [&](TaskId from) {
        return std::ranges::any_of(draft_.task(from).writes, [&](const Ref& to) {
          return std::ranges::any_of(state, [&](const Ref& ref) { return meet(to, ref); });
        });
      });
      if (!fills) continue;
      if (found) return std::nullopt;
      found = signal;
    }
    return found;
  }

  // Adds the other sources as addends and stores the panel where the total goes. In a panel without
  // a sum of its own, its own source is an addend too, at its position.
  [[nodiscard]] bool take(const Total& total, std::optional<DType> operands, Panel& panel,
                          std::set<std::int32_t>& awaited) {
    const TaskId finalise = total.task;
    const std::vector<Place> own = panel.stores;
    if (!total.has(own)) return refused(finalise, Reason::NotWhole);
    const RankId rank = rank_of(draft_.plan, finalise);
    const std::optional<DType> added = own.size() == 1 ? operands : panel.dtype;
    for (std::size_t i = 0; i < total.sources.size(); ++i) {
      const Total::Source& source = total.sources[i];
      std::optional<std::vector<Place>> places = source.find(own);
      if (!places) return refused(finalise, Reason::NotWhole);
      if (places == own) {
        if (panel.meets.empty()) panel.addends.push_back({.reads = own, .when = {}});
        continue;
      }
      const auto is_other = [&](const Place& place) {
        return draft_.dtype_of(place.alloc) != added;
      };
      if (std::ranges::any_of(*places, is_other)) return refused(finalise, Reason::OtherType);
      if (!source.signal) {
        draft_.refuse(finalise, Reason::UnknownAddend, finalise.value,
                      static_cast<std::int64_t>(i));
        return false;
      }
      awaited.insert(*source.signal);
      panel.addends.push_back(
          {.reads = *std::move(places), .when = draft_.signal_id(rank, *source.signal)});
    }
    const std::vector<Ref>& homes = draft_.task(finalise).writes;
    panel.dtype = draft_.dtype_of(homes.front().alloc);
    if (panel.dtype != operands && panel.dtype != DType::F32) {
      return refused(finalise, Reason::OtherType);
    }
    for (std::size_t i = 0; i < homes.size(); ++i) panel.stores[i].alloc = homes[i].alloc;
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
