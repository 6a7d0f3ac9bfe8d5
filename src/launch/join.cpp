#include "launch/join.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ir/mask_contract.h"

namespace harpe::launch {
namespace {

// The index of an element of `all` that is like `one`, which is appended if there is none.
template <class Value, class Alike>
std::size_t index_in(std::vector<Value>& all, const Value& one, const Alike& alike) {
  const auto found = std::ranges::find_if(all, [&](const Value& each) { return alike(each, one); });
  if (found != all.end()) return static_cast<std::size_t>(found - all.begin());
  all.push_back(one);
  return all.size() - 1;
}

// Each GEMM kernel contributes one arrival.
std::optional<Reason> add_gemm(Kernel& joined, const Kernel& kernel, Arrival arrival) {
  const auto index = static_cast<std::int32_t>(joined.arrivals.size());
  Panel panel = kernel.panels.front();
  panel.meets = {index};
  joined.arrivals.push_back(std::move(arrival));
  if (!joined.panels.empty() && joined.panels.back().stores == panel.stores) {
    if (!panel.adds) return Reason::OtherPanels;
    joined.panels.back().meets.push_back(index);
    return std::nullopt;
  }
  if (!joined.panels.empty() && joined.panels.back().adds != panel.adds) return Reason::OtherPanels;
  joined.panels.push_back(std::move(panel));
  return std::nullopt;
}

// A panel's first chunk either continues a state or starts one, as the first panel's chunk does.
// Every later chunk of the panel continues a state.
std::optional<Reason> add_attention(Kernel& joined, const Kernel& kernel, const Arrival& arrival) {
  Panel panel = kernel.panels.front();
  const std::size_t panels = joined.panels.size();
  panel.meets.clear();
  const std::size_t at = index_in(joined.panels, panel, [](const Panel& one, const Panel& other) {
    return one.stores == other.stores && one.reads.front() == other.reads.front();
  });
  const bool begins = joined.panels.size() > panels;
  constexpr std::size_t kCarried = 3;  // queries, the state and its lse
  const std::size_t reads = begins ? joined.panels.front().reads.size() : kCarried;
  const auto chunk = static_cast<std::int32_t>(
      index_in(joined.arrivals, {.reads = arrival.reads, .when = {}},
               [](const Arrival& one, const Arrival& other) { return one.reads == other.reads; }));
  std::vector<std::int32_t>& meets = joined.panels[at].meets;
  if (panel.reads.size() != reads || std::ranges::find(meets, chunk) != meets.end()) {
    return Reason::OtherPanels;
  }
  meets.push_back(chunk);
  std::optional<SignalId>& when = joined.arrivals[static_cast<std::size_t>(chunk)].when;
  if (when && when != arrival.when) return Reason::SharedArrivals;
  when = arrival.when;
  return std::nullopt;
}

bool has_one_panel(const Kernel& kernel) {
  return kernel.panels.size() == 1 && kernel.arrivals.size() == 1 &&
         kernel.arrivals.front().reads.size() == 2 && !kernel.panels.front().stores.empty();
}

// True if a mask depends on positions.
bool is_masked(const Draft& draft, const Task& task) {
  const std::vector<Nest>& nests = draft.plan.program.nests;
  const auto nest = std::ranges::find(nests, task.nest, &Nest::name);
  if (nest == nests.end()) return false;
  const std::vector<Mask>& masks = nest->stmts[static_cast<std::size_t>(task.stmt)].masks;
  return std::ranges::any_of(masks, [](const Mask& mask) {
    const MaskKind kind = read_mask(mask).contract->kind;
    return kind == MaskKind::Causal || kind == MaskKind::Window;
  });
}

bool comes_before(const Panel& one, const Panel& other) {
  const auto begin = [](const Interval& along) { return along.begin; };
  return std::ranges::lexicographical_compare(one.reads.front().span, other.reads.front().span, {},
                                              begin, begin);
}

}  // namespace

Result<Kernel, Refused> join_kernels(const Draft& draft, std::span<const AwaitedKernel> kernels) {
  Kernel joined;
  joined.name = kernels.front().kernel->name;
  for (const AwaitedKernel& one : kernels) {
    if (!has_one_panel(*one.kernel) || one.kernel->name != joined.name) {
      return Refused{.reason = Reason::NoPanels, .a = one.task.value};
    }
    Arrival arrival = one.kernel->arrivals.front();
    arrival.when = one.when;
    const bool is_gemm = one.kernel->panels.front().reads.empty();
    const auto refused = is_gemm ? add_gemm(joined, *one.kernel, std::move(arrival))
                                 : add_attention(joined, *one.kernel, arrival);
    if (refused) return Refused{.reason = *refused, .a = one.task.value};
  }
  if (is_masked(draft, draft.task(kernels.front().task))) {
    std::ranges::stable_sort(joined.panels, comes_before);
    for (Panel& panel : joined.panels) std::ranges::sort(panel.meets);
  }
  return joined;
}

Kernel with_panels(const Kernel& kernel, std::vector<Panel> panels) {
  Kernel result;
  result.name = kernel.name;
  std::map<std::int32_t, std::int32_t> taken;  // from arrivals of `kernel` to those of `result`
  for (Panel& panel : panels) {
    for (std::int32_t& met : panel.meets) {
      const auto next = static_cast<std::int32_t>(result.arrivals.size());
      const auto [at, is_new] = taken.emplace(met, next);
      if (is_new) result.arrivals.push_back(kernel.arrivals[static_cast<std::size_t>(met)]);
      met = at->second;
    }
  }
  result.panels = std::move(panels);
  return result;
}

bool can_store_for(Draft& draft, TaskId copy) {
  const Task& task = draft.task(copy);
  const sync::TaskWiring& wiring = draft.wiring_of(copy);
  if (task.kind != TaskKind::Copy || task.via != Via::Sm) return false;
  const bool fits = wiring.after.empty() && wiring.raises.size() <= 1 &&
                    std::ranges::none_of(wiring.raises, &sync::PageRaise::is_posted);
  if (fits && sync::waits_for_entries(draft.plan, draft.wiring, copy)) return true;
  draft.refuse(copy, Reason::WaitsForMore, copy.value);
  return false;
}

void take_over(Draft& draft, std::size_t step, std::span<const TaskId> copies) {
  for (const TaskId copy : copies) {
    const std::size_t joined = draft.step_at[copy.index()];
    Launch& launch = draft.steps[joined].launch;
    launch.raises.clear();
    std::vector<SignalId>& awaits = draft.steps[step].launch.awaits;
    awaits.insert(awaits.end(), launch.awaits.begin(), launch.awaits.end());
    draft.join(step, joined);
    draft.applied(copy);
  }
}

}  // namespace harpe::launch
