#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "exec/actions/action.h"
#include "plan/launch_plan.h"
#include "plan/plan.h"
#include "support/diag.h"

namespace harpe::cpu {

// A launch plan as what queues do one after the other: each step waits for signals, works, and
// raises signals. A launch is one step, or several where it waits or raises in between: a
// collective that is pulled announces itself, pulls and leaves; a kernel with panels has a step for
// each of its copies and panels, and one for each arrival that it waits for inside.

// A part of a panel: what it goes on from, what one arrival or addend gives it, what a map makes of
// it, or its store.
struct PanelPart {
  enum class Kind : std::uint8_t { Begin, Meet, Add, Map, Store };
  std::int32_t kernel = 0;
  std::int32_t panel = 0;
  Kind kind = Kind::Begin;
  std::int32_t index = 0;  // of Panel::meets, Panel::addends or Panel::maps
};
struct CopyPart {
  std::int32_t kernel = 0;
  std::int32_t copy = 0;
};
// All that a task does, or a part of a kernel.
using Part = std::variant<TaskId, PanelPart, CopyPart>;

struct SignalRaise {
  std::int32_t signal = 0;  // index into LaunchSteps::signals
  std::uint32_t adds = 0;   // what a counter grows by; 0: a flag
  friend auto operator<=>(const SignalRaise&, const SignalRaise&) = default;
};

struct Step {
  launch::LaunchId launch;
  TaskId task;  // the launch's first
  bool begins = false;
  bool ends = false;
  std::vector<std::int32_t> waits = {};  // indices into LaunchSteps::signals
  std::vector<Part> parts = {};
  std::vector<SignalRaise> raises = {};
};

// A signal of the launch plan, or an event: that a launch of the rank has begun, or is over.
struct StepSignal {
  std::optional<launch::SignalKind> kind;  // none: an event
  std::int32_t index = 0;                  // as of launch::Signal; of an event the launch's task
  std::int64_t arrivals = 1;
  RankId rank;  // that waits
  std::vector<TaskId> from = {};
};

struct StepPlace {
  std::int32_t queue = 0;
  std::int32_t position = 0;  // in its queue
  friend auto operator<=>(const StepPlace&, const StepPlace&) = default;
};

struct LaunchSteps {
  std::vector<StepSignal> signals;        // the launch plan's, then events
  std::vector<std::vector<Step>> queues;  // the plan's, each in the order of its launches
  std::vector<StepPlace> ends;            // per task: the last step of its launch
};

// Pure. Requires: launches of the plan. Errors: V202 launches that land puts; V704 what no kernel
// of the launch does.
[[nodiscard]] Checked<LaunchSteps> make_steps(const Plan& plan, const launch::LaunchPlan& launches);

// The statement that a kernel with panels works for: of a task of its launch, whose operands and
// results are what the kernel reads, and stores or maps. None where it is no task's.
[[nodiscard]] std::optional<TaskId> find_statement(const Plan& plan, const launch::Launch& launch,
                                                   const launch::Kernel& kernel);

}  // namespace harpe::cpu
