#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "launch/target.h"
#include "plan/launch_plan.h"
#include "plan/ref_layouts.h"
#include "sync/groups.h"
#include "sync/wiring.h"

namespace harpe::launch {

enum class Reason : std::uint8_t {
#define HP_REASON(NAME, TEXT) NAME,
#include "launch/reasons.def"
#undef HP_REASON
};

// A pass's decision about the launch of a task: applied, or refused for a reason.
struct Decision {
  std::string_view pass;
  TaskId task;
  std::optional<Reason> refused;
  std::int64_t a = 0;  // the reason's numbers
  std::int64_t b = 0;
};
[[nodiscard]] std::string print(const Decision& decision);

// Where a launch that stores at peers makes the panels that stay on its rank: there are none, a
// second kernel makes them until add_at_home joins both, or the same kernel makes them.
enum class Staying : std::uint8_t { None, Apart, Inside };

// A launch that passes still change. `after` and `begun` hold step indices instead of launch ids.
struct Step {
  Launch launch;
  bool waits_inside = false;         // the kernel waits for the signals of its tasks
  bool stores_at_peers = false;      // its first kernel has the panels that are sent
  Staying staying = Staying::None;   // where the panels are made that stay on the rank
  bool is_joined = false;            // to another step, which does its tasks
  std::vector<TaskId> waiting = {};  // those of its tasks that wait inside the kernel
};

// The launch without kernels and signals. Passes give it to Offers::choose with a changed kernel.
[[nodiscard]] Launch proposal(const Launch& launch);

// The input of the passes: the plan, its target and its synchronization.
struct DraftSource {
  const Plan& plan;  // the boxes of exchanges follow its own allocations
  const Blocks& blocks;
  const Target::Facts& target;
  Offers& offers;
  const sync::Groups& groups;
  const sync::Wiring& wiring;
};

// The launch plan while passes change it. At first every task is a launch of its own; passes join
// launches and edit their kernels. Lookups are by task and allocation, so that passes take nearly
// linear time in the plan.
class Draft : public DraftSource {
 public:
  // Errors: those of Offers::kernels_of. Requires: everything that `source` refers to outlives it.
  [[nodiscard]] static Checked<Draft> begin(const DraftSource& source,
                                            const std::vector<AllocId>& partials16);

  [[nodiscard]] const Task& task(TaskId id) const { return plan.tasks[id.index()]; }
  [[nodiscard]] const sync::TaskWiring& wiring_of(TaskId id) const {
    return wiring.tasks[id.index()];
  }
  [[nodiscard]] const Alloc& alloc_of(const Ref& ref) const {
    return plan.allocs[ref.alloc.index()];
  }
  [[nodiscard]] Step& step_of(TaskId id) { return steps[step_at[id.index()]]; }
  [[nodiscard]] SignalId signal_id(RankId rank, std::int32_t signal) const {
    return SignalId(first_signal[rank.index()] + signal);
  }
  [[nodiscard]] Raise raise_of(const sync::PageRaise& raise) const {
    return {.signal = signal_id(raise.rank, raise.signal), .adds = raise.added};
  }
  // The task that follows in the same queue.
  [[nodiscard]] std::optional<TaskId> next(TaskId id) const { return next_of[id.index()]; }
  // True if, for kernels of launches from `step` on, no launch has to raise the task's signals.
  [[nodiscard]] bool is_silent(TaskId id, std::size_t step) const {
    return silent_from[id.index()] <= step;
  }
  [[nodiscard]] DType dtype_of(AllocId alloc) const { return plan.allocs[alloc.index()].dtype; }
  // The type of the panel's operands; none where the panel meets no arrival.
  [[nodiscard]] std::optional<DType> operand_type(const Kernel& kernel, const Panel& panel) const;

  // Moves the tasks of `other`, which is not launched any more, to `step`.
  void join(std::size_t step, std::size_t other);
  // Marks a task whose signals a kernel raises, or that no task waits for.
  void silence(TaskId id, std::size_t from_step);

  void applied(TaskId id) { decisions.push_back({.pass = pass, .task = id, .refused = {}}); }
  void refuse(TaskId id, Reason reason, std::int64_t a = 0, std::int64_t b = 0) {
    decisions.push_back({.pass = pass, .task = id, .refused = reason, .a = a, .b = b});
  }

  // The current launch plan: joined launches are left out, and ids are dense.
  [[nodiscard]] LaunchPlan plan_so_far() const;
  // The same after the last pass. It leaves the draft empty.
  [[nodiscard]] LaunchPlan finish();

  RefLayouts layouts;
  LaunchPlan out;           // without its launches
  std::vector<Step> steps;  // rank by rank, in the order in which a rank issues them
  // By task:
  std::vector<std::size_t> step_at;   // its step; for a put, the step that packs it
  std::vector<std::size_t> position;  // the step that begin made for it
  std::vector<std::optional<TaskId>> next_of;
  std::vector<std::size_t> silent_from;
  std::vector<bool> is_first;      // the first task of its queue
  std::vector<bool> is_followed;   // tasks in other queues of its rank wait for it
  std::vector<bool> has_kernels;   // its own launch has kernels
  std::vector<bool> is_by_engine;  // only the copy engine works for it, if anything does
  // By allocation, each task once, in ascending order:
  std::vector<std::vector<TaskId>> readers;
  std::vector<std::vector<TaskId>> writers;

  std::vector<std::int32_t> first_signal;  // by rank
  std::string_view pass;                   // the pass that runs
  std::vector<Decision> decisions;

 private:
  explicit Draft(const DraftSource& source)
      : DraftSource(source), layouts(source.plan, source.blocks) {}
  void add_signals();
  void add_steps();
  void index_tasks();
  [[nodiscard]] Checked<Ok> add_kernels();
  [[nodiscard]] Launch launch_of(RankId rank, TaskId id, bool lands) const;
};

}  // namespace harpe::launch
