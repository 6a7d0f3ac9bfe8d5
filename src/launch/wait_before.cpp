#include <algorithm>

#include "launch/passes.h"

namespace harpe::launch {
namespace {

void move_wait(std::optional<SignalId>& when, Launch& launch) {
  if (!when) return;
  if (std::ranges::find(launch.awaits, *when) == launch.awaits.end()) {
    launch.awaits.push_back(*when);
  }
  when.reset();
}

}  // namespace

void wait_before(Draft& draft) {
  if (!draft.target.shares_sms) return;
  for (Step& step : draft.steps) {
    if (!step.waits_inside || step.is_joined) continue;
    for (Kernel& kernel : step.launch.kernels) {
      for (Arrival& arrival : kernel.arrivals) move_wait(arrival.when, step.launch);
    }
    step.waits_inside = false;
    draft.applied(step.launch.does.front());
  }
}

}  // namespace harpe::launch
