#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/launch_plan.h"
#include "plan/plan.h"
#include "support/diag.h"
#include "verify/model.h"
#include "verify/resolved.h"

namespace harpe::verifier {

// A launch plan as steps (docs/math/verify.md 6): a plan whose tasks are what launches do one after
// the other, and whose queues are what runs in order: the queues of launches, and further ones for
// panels and fused copies, since blocks of one kernel run side by side.

enum class StepKind : std::uint8_t {
  Begin,   // its waits are over
  Task,    // the effect of a task that plain kernels do
  Carry,   // a panel takes the state that it goes on from
  Meet,    // a panel adds what an arrival gives
  Addend,  // a panel adds another rank's contribution
  Map,     // a panel's value is taken from its sum, or goes through a map
  Store,   // a panel is stored
  Copy,    // a fused copy
  End,
};

struct StepOrigin {
  StepKind kind = StepKind::Begin;
  launch::LaunchId launch;
  std::int32_t kernel = 0;
  std::int32_t part = 0;  // panel or fused copy
  TaskId task = {};       // of a Task
};

// Reads of a step that wait for a signal: some of its refs.
struct AwaitedReads {
  std::int32_t step = 0;
  std::size_t first = 0;
  std::size_t count = 0;
};

// Steps that wait for a signal, and steps that raise it, of one execution.
struct SignalUse {
  std::vector<std::int32_t> raised;
  std::vector<std::int32_t> awaited;
  std::vector<AwaitedReads> reads;  // of addends that wait for it
  std::int64_t adds = 0;            // in all; a flag counts as one
};

struct Steps {
  Plan plan;  // the steps of one execution, then those of the next with no refs of their own
  Scope scope;
  std::vector<StepOrigin> origins;  // of one execution
  std::vector<std::int32_t> first;  // per launch
  std::vector<std::int32_t> last;   // per launch
  std::vector<SignalUse> signals;   // per signal
  // Of plan.syncs and plan.barriers, what launches and signals with words order: signals in data
  // are behind them.
  std::size_t syncs_of_words = 0;
  std::size_t barriers_of_words = 0;

  [[nodiscard]] std::string name(std::int64_t step, const Words& of_plan) const;
};

// Requires: check_launch_ids. Errors: V704 to V707, V710.
[[nodiscard]] Checked<Steps> make_steps(const Plan& plan, const launch::LaunchPlan& launches,
                                        const Words& words);

}  // namespace harpe::verifier
