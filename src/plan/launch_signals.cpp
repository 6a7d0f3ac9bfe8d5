#include "plan/launch_signals.h"

#include <algorithm>
#include <set>

namespace harpe::launch {

bool waits_inside(const Kernel& kernel) {
  const auto is_awaited = [](const auto& each) { return each.when.has_value(); };
  return std::ranges::any_of(kernel.arrivals, is_awaited) ||
         std::ranges::any_of(kernel.panels, [&](const Panel& panel) {
           return std::ranges::any_of(panel.addends, is_awaited);
         });
}

bool names_signals(const Kernel& kernel) {
  return waits_inside(kernel) || !kernel.fused_stores.empty() || !kernel.fused_copies.empty();
}

bool are_credits(const std::vector<Signal>& signals, const std::vector<Raise>& raises) {
  return std::ranges::all_of(raises, [&](const Raise& raise) {
    return signals[raise.signal.index()].kind == SignalKind::Credit;
  });
}

std::vector<AllocId> inboxes_of(const LaunchPlan& launches) {
  std::set<AllocId> found;
  for (const Launch& launch : launches.launches) {
    for (const Kernel& kernel : launch.kernels) {
      for (const Panel& panel : kernel.panels) {
        for (const Addend& addend : panel.addends) {
          if (!addend.when || !launches.signals[addend.when->index()].is_in_data) continue;
          for (const Place& place : addend.reads) found.insert(place.alloc);
        }
      }
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace harpe::launch
