#include "plan/inboxes.h"

#include <set>

namespace harpe::launch {

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
