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

// A launch plan as steps (docs/math/verify.md 6): a plan whose tasks are the actions of launches.
// Its queues are the queues of launches, and further ones for panels and fused copies, because
// thread blocks of one kernel run concurrently.

enum class StepKind : std::uint8_t {
  Begin,   // the launch's waits are over
  Task,    // the effect of a task that a plain kernel does
  Carry,   // a panel loads the state that it continues from
  Meet,    // a panel adds the contribution of an arrival
  Addend,  // a panel adds another rank's contribution
  Map,     // a panel's sum becomes a value, or a map is applied to the value
  Store,   // a panel is stored
  Copy,    // a fused copy
  End,
};

struct StepOrigin {
  StepKind kind = StepKind::Begin;
  launch::LaunchId launch;
  std::int32_t kernel = 0;
  std::int32_t part = 0;  // panel or fused copy
  TaskId task = {};       // for StepKind::Task
};

// Reads of one step that wait for a signal: a range of its refs.
struct AwaitedReads {
  std::int32_t step = 0;
  std::size_t first = 0;
  std::size_t count = 0;
};

// The steps of one execution that wait for a signal or raise it.
struct SignalUse {
  std::vector<std::int32_t> raised;
  std::vector<std::int32_t> awaited;
  std::vector<AwaitedReads> reads;  // of addends that wait for it
  std::int64_t adds = 0;            // total increment; a flag counts as one
};

struct Steps {
  Plan plan;  // the steps of one execution, then those of the next, without refs of their own
  Scope scope;
  std::vector<StepOrigin> origins;  // of one execution
  std::vector<std::int32_t> first;  // per launch
  std::vector<std::int32_t> last;   // per launch
  std::vector<SignalUse> signals;   // per signal
  // The part of plan.syncs and plan.barriers from launches and signals with memory cells; entries
  // of signals in data follow.
  std::size_t syncs_of_words = 0;
  std::size_t barriers_of_words = 0;

  [[nodiscard]] std::string name(std::int64_t step, const Words& of_plan) const;
};

// Requires: check_launch_ids. Errors: V704 to V707, V710.
[[nodiscard]] Checked<Steps> make_steps(const Plan& plan, const launch::LaunchPlan& launches,
                                        const Words& words);

}  // namespace harpe::verifier
