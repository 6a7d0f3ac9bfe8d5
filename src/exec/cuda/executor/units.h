#pragma once

#include <vector>

#include "exec/actions/action.h"
#include "exec/cuda/actions/launch_spec.h"
#include "exec/cuda/executor/groups.h"
#include "exec/cuda/executor/wiring.h"

namespace harpe::cuda {

// Multiprocessors that a kernel which fills the others leaves to kernels of a warp, such as raise
// signals: these did not run beside blocks that fill a multiprocessor (measured, an H200).
constexpr int kForSignals = 2;

// What a task becomes on its own.
struct TaskSpecs {
  std::vector<actions::Action> actions;
  std::vector<LaunchSpec> launches;
};

// Tasks of one lane that run as one: their waits before them, or inside their one launch, and their
// signals behind.
struct UnitSpec {
  std::vector<TaskId> tasks;
  std::vector<LaunchSpec> launches;
  bool waits_inside = false;
  int spared = 0;  // multiprocessors that its launches leave to others
};

// How a rank's waits look to kernels: the flag of a word of its page, and what an expiry does.
struct WaitSource {
  std::vector<device::FlagWait> words;  // of the rank's page
  device::WaitContext context{};        // but for its task
};

// A rank's tasks as units, in the order of its sequence. A group becomes one launch where its tasks
// are of a kind that can be (actions/merge.h); it reads the rank's own inputs in place
// (actions/read_in_place.h). Results that one unit makes whole and that are then only rounded into
// their home are written there at once (actions/relocate.h). `specs` are by task.
// Requires: wiring and groups are the plan's.
[[nodiscard]] std::vector<UnitSpec> make_units(const Plan& plan, const Wiring& wiring,
                                               const Groups& groups, RankId rank,
                                               const std::vector<TaskSpecs>& specs,
                                               const WaitSource& waits);

}  // namespace harpe::cuda
