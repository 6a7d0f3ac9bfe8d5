#include <algorithm>
#include <compare>
#include <map>
#include <set>
#include <vector>

#include "launch/passes.h"
#include "plan/refs.h"

namespace harpe::launch {
namespace {

// A kernel of a launch.
struct KernelAt {
  std::size_t step = 0;
  std::size_t kernel = 0;
  friend auto operator<=>(const KernelAt&, const KernelAt&) = default;
};

// The kernels that raise a signal and those that wait for it.
struct Use {
  std::vector<KernelAt> stores;   // fused stores that raise it as a flag
  std::vector<KernelAt> addends;  // addends that wait for it
  std::vector<Place> stored;      // by the panels of these stores
  std::vector<Place> read;        // by these addends
  std::set<DType> dtypes;         // of these panels
  int others = 0;                 // other uses: they raise it, wait for it, or add to memory
};

class Carrier {
 public:
  explicit Carrier(Draft& draft) : draft_(draft), uses_(draft.out.signals.size()) {
    for (std::size_t at = 0; at < draft.steps.size(); ++at) {
      const Step& step = draft.steps[at];
      if (step.is_joined) continue;
      note_outside(step.launch);
      for (std::size_t i = 0; i < step.launch.kernels.size(); ++i) {
        note_inside(step.launch.kernels[i], {.step = at, .kernel = i});
      }
    }
  }

  // A kernel awaits all suitable signals in data, or none of them.
  void carry() {
    std::map<KernelAt, std::vector<SignalId>> carried;
    std::map<KernelAt, std::int64_t> bytes;
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      const Use& use = uses_[i];
      if (!can_be_carried(draft_.out.signals[i], use)) continue;
      const KernelAt to = use.addends.front();
      carried[to].emplace_back(static_cast<std::int64_t>(i));
      for (const Place& place : use.read) {
        bytes[to] += count_elements(place.span) * size_in_bytes(draft_.dtype_of(place.alloc));
      }
    }
    for (const auto& [to, signals] : carried) carry(signals, bytes[to]);
  }

 private:
  void carry(const std::vector<SignalId>& signals, std::int64_t bytes) {
    for (const SignalId id : signals) {
      Signal& signal = draft_.out.signals[id.index()];
      signal.is_in_data = bytes <= draft_.target.most_in_data;
      if (signal.is_in_data) {
        draft_.applied(signal.from.front());
      } else {
        draft_.refuse(signal.from.front(), Reason::MuchData, bytes, draft_.target.most_in_data);
      }
    }
  }

  Use& use_of(SignalId signal) { return uses_[signal.index()]; }

  void note_outside(const Launch& launch) {
    for (const auto* const raises : {&launch.ready, &launch.pulled, &launch.raises}) {
      for (const Raise& raise : *raises) ++use_of(raise.signal).others;
    }
    for (const SignalId signal : launch.awaits) ++use_of(signal).others;
    for (const auto& signal : {launch.all_ready, launch.all_pulled}) {
      if (signal) ++use_of(*signal).others;
    }
  }

  void note_inside(const Kernel& kernel, KernelAt at) {
    for (const Arrival& arrival : kernel.arrivals) {
      if (arrival.when) ++use_of(*arrival.when).others;
    }
    for (const FusedCopy& copy : kernel.fused_copies) {
      if (copy.raises) ++use_of(*copy.raises).others;
    }
    for (std::size_t i = 0; i < kernel.fused_stores.size(); ++i) {
      Use& use = use_of(kernel.fused_stores[i].signal);
      use.stores.push_back(at);
      if (kernel.fused_stores[i].adds != 0) ++use.others;
      for (const Panel& panel : kernel.panels) {
        if (panel.fused_store != static_cast<std::int32_t>(i)) continue;
        use.stored.insert(use.stored.end(), panel.stores.begin(), panel.stores.end());
        if (panel.adds) ++use.others;
        use.dtypes.insert(panel.dtype);
      }
    }
    for (const Panel& panel : kernel.panels) {
      for (const Addend& addend : panel.addends) {
        if (!addend.when) continue;
        Use& use = use_of(*addend.when);
        use.addends.push_back(at);
        use.read.insert(use.read.end(), addend.reads.begin(), addend.reads.end());
      }
    }
  }

  [[nodiscard]] bool can_be_carried(const Signal& signal, const Use& use) {
    const bool is_flag =
        signal.kind == SignalKind::Sync && signal.arrivals == 1 && !signal.is_posted;
    if (!is_flag || use.others > 0 || use.stores.size() != 1 || use.addends.empty()) return false;
    const KernelAt from = use.stores.front();
    const KernelAt to = use.addends.front();
    if (std::ranges::count(use.addends, to) != std::ssize(use.addends)) return false;
    if (!std::ranges::is_permutation(use.stored, use.read)) return false;
    const auto by_threads = [&](KernelAt at) {
      const Kernel& kernel = draft_.steps[at.step].launch.kernels[at.kernel];
      return std::ranges::all_of(
          use.dtypes, [&](DType dtype) { return draft_.offers.moves_by_threads(kernel, dtype); });
    };
    return by_threads(from) && by_threads(to) &&
           std::ranges::all_of(use.read, [&](const Place& place) {
             return is_between(place.alloc, from, to) && is_for_addends(place.alloc, to);
           });
  }

  // True if the memory is not a home, and no other launches touch it.
  [[nodiscard]] bool is_between(AllocId alloc, KernelAt from, KernelAt to) const {
    if (draft_.plan.allocs[alloc.index()].level == Level::Home) return false;
    const auto is_of = [&](std::size_t step) {
      return [this, step](TaskId id) { return draft_.step_at[id.index()] == step; };
    };
    return std::ranges::all_of(draft_.writers[alloc.index()], is_of(from.step)) &&
           std::ranges::all_of(draft_.readers[alloc.index()], is_of(to.step));
  }

  // True if the kernel only reads the allocation's elements as addends, and does not write them.
  [[nodiscard]] bool is_for_addends(AllocId alloc, KernelAt at) const {
    const Kernel& kernel = draft_.steps[at.step].launch.kernels[at.kernel];
    const auto none_in = [&](const std::vector<Place>& places) {
      return std::ranges::none_of(places, [&](const Place& place) { return place.alloc == alloc; });
    };
    const auto leaves_it = [&](const Panel& panel) {
      return none_in(panel.reads) && none_in(panel.stores) &&
             std::ranges::all_of(panel.maps, [&](const Map& map) { return none_in(map.reads); });
    };
    return std::ranges::all_of(kernel.arrivals,
                               [&](const Arrival& arrival) { return none_in(arrival.reads); }) &&
           std::ranges::all_of(kernel.panels, leaves_it);
  }

  Draft& draft_;
  std::vector<Use> uses_;  // by signal
};

}  // namespace

void signal_in_data(Draft& draft) { Carrier(draft).carry(); }

}  // namespace harpe::launch
