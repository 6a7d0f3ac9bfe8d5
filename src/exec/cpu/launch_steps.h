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

// A launch plan as the sequence of steps of each queue. A step waits for signals, works, then
// raises signals. A launch is one step, or several if it waits or raises in between: a pulled
// collective announces itself, pulls and leaves; a kernel with panels has a step for each of its
// copies and panels, and one for each arrival that it waits for inside.

// A part of a panel: its initial value, the contribution of one arrival or addend, a map, or its
// store.
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
// The whole of a task, or a part of a kernel.
using Part = std::variant<TaskId, PanelPart, CopyPart>;

struct SignalRaise {
  std::int32_t signal = 0;  // index into LaunchSteps::signals
  std::uint32_t adds = 0;   // increment of a counter; 0: a flag
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

// A signal of the launch plan, or an event: a launch of the rank has begun, or has ended.
struct StepSignal {
  std::optional<launch::SignalKind> kind;  // none: an event
  std::int32_t index = 0;                  // as launch::Signal; of an event, the launch's task
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

// Pure. Requires: launches of the plan. Errors: V202 launches that land puts; V704 tasks that no
// kernel of the launch does.
[[nodiscard]] Checked<LaunchSteps> make_steps(const Plan& plan, const launch::LaunchPlan& launches);

// The task whose statement a kernel with panels computes: a task of its launch, whose operands the
// kernel reads and whose results it stores or maps. None if no task matches.
[[nodiscard]] std::optional<TaskId> find_statement(const Plan& plan, const launch::Launch& launch,
                                                   const launch::Kernel& kernel);

}  // namespace harpe::cpu
