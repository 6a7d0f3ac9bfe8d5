#pragma once

#include <cstdint>
#include <functional>
#include <optional>
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
  std::int64_t scratch = 0;  // bytes that these use besides the plan's memory
};

// Who raises the signals of a unit's tasks, behind its launches.
enum class RaisedBy : std::uint8_t {
  Kernel,
  Engine,  // flags alone, by copies of the epoch
};

// Tasks of one queue that run as one: their waits before them, or inside their one launch, and
// their signals behind.
struct UnitSpec {
  std::vector<TaskId> tasks;
  std::vector<LaunchSpec> launches;
  bool waits_inside = false;
  int spared = 0;  // multiprocessors that its launches leave to others
  RaisedBy raised_by = RaisedBy::Kernel;
  std::vector<TaskId> silent = {};  // tasks whose signals launches raise, or that nobody hears
  std::vector<TaskId> behind = {};  // it begins once what these wait for is there
  std::vector<std::int32_t> awaited = {};  // further signals to wait for before the launches
  std::vector<TaskId> joined = {};         // of its tasks, those that the launches of others do
};

// What its kernel waits with, where it is one kernel that waits inside; else null.
[[nodiscard]] device::WaitContext* inner_wait(UnitSpec& unit);

// How a rank's signals look to kernels, and what an expired wait does.
struct SignalSource {
  std::vector<device::FlagWait> waits;  // of the rank's page
  device::WaitContext context{};        // but for its task
  DeviceAddress arena = 0;              // where the rank's allocations begin
  bool is_alone = true;                 // no GPU is shared by ranks
  int multiprocessors = 132;
  // What a task raises for another rank; none where it is to be lost.
  std::function<std::optional<device::RaiseTarget>(TaskId, const Raise&)> target;
};

// A rank's tasks as units, in the order of its sequence. A group becomes one launch where its tasks
// are of a kind that can be (actions/merge.h); it reads the rank's own inputs in place
// (actions/read_in_place.h). Results that one unit makes whole and that are then only rounded into
// their home are written there at once (actions/relocate.h); so are sums that are sent on, and
// those that others' are added to (executor/fused_stores.h). `specs` are by task. Requires: wiring
// and groups are the plan's.
[[nodiscard]] std::vector<UnitSpec> make_units(const Plan& plan, const Wiring& wiring,
                                               const Groups& groups, RankId rank,
                                               const std::vector<TaskSpecs>& specs,
                                               const SignalSource& signals);

}  // namespace harpe::cuda
