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

// What a pass decided about the launch of a task: it changed it, or why it did not.
struct Decision {
  std::string_view pass;
  TaskId task;
  std::optional<Reason> refused;
  std::int64_t a = 0;  // the reason's numbers
  std::int64_t b = 0;
};
[[nodiscard]] std::string print(const Decision& decision);

// Of a launch that stores at peers: all its panels do; others are a second kernel's, until they
// are added up with what has arrived; or all are one kernel's.
enum class Staying : std::uint8_t { None, Apart, Inside };

// A launch under way. `after` and `begun` name steps.
struct Step {
  Launch launch;
  bool waits_inside = false;         // for its members' signals
  bool stores_at_peers = false;      // its first kernel has the panels that are sent
  Staying staying = Staying::None;   // where its panels are that are not sent
  bool is_joined = false;            // to another, which does its tasks
  std::vector<TaskId> waiting = {};  // of its tasks, those that wait for something inside
};

// The launch without its kernels, as Offers::choose is asked about others in their place.
[[nodiscard]] Launch proposal(const Launch& launch);

// What passes know of the plan, and how it is ordered.
struct DraftSource {
  const Plan& plan;  // with the boxes of exchanges behind its allocations
  const Blocks& blocks;
  const Target::Facts& target;
  Offers& offers;
  const sync::Groups& groups;
  const sync::Wiring& wiring;
};

// The launch plan under way: first every task is a launch of its own; passes join launches and edit
// their kernels. Lookups are by task and allocation, so that passes are near linear in the plan.
class Draft : public DraftSource {
 public:
  // Errors: those of Offers::kernels_of. Requires: the source's parts outlive it.
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
  // The task behind in its queue.
  [[nodiscard]] std::optional<TaskId> next(TaskId id) const { return next_of[id.index()]; }
  // Whether the task's signals need no launch of their own, for kernels of launches from `step` on.
  [[nodiscard]] bool is_silent(TaskId id, std::size_t step) const {
    return silent_from[id.index()] <= step;
  }
  [[nodiscard]] DType dtype_of(AllocId alloc) const { return plan.allocs[alloc.index()].dtype; }
  // What the panel's operands are stored in; none where it meets none.
  [[nodiscard]] std::optional<DType> operand_type(const Kernel& kernel, const Panel& panel) const;

  // The tasks of `other`, which is launched no more, belong to `step`.
  void join(std::size_t step, std::size_t other);
  // As of a task whose signals a kernel raises, or that no task waits for.
  void silence(TaskId id, std::size_t from_step);

  void applied(TaskId id) { decisions.push_back({.pass = pass, .task = id, .refused = {}}); }
  void refuse(TaskId id, Reason reason, std::int64_t a = 0, std::int64_t b = 0) {
    decisions.push_back({.pass = pass, .task = id, .refused = reason, .a = a, .b = b});
  }

  // As it stands: without launches that were joined to others, and numbered anew.
  [[nodiscard]] LaunchPlan plan_so_far() const;
  // The same once no pass is left. The draft is used up.
  [[nodiscard]] LaunchPlan finish();

  RefLayouts layouts;
  LaunchPlan out;           // but for its launches
  std::vector<Step> steps;  // rank by rank, in the order in which a rank issues them
  // By task:
  std::vector<std::size_t> step_at;   // its step; of a put its packing
  std::vector<std::size_t> position;  // the step that was its own
  std::vector<std::optional<TaskId>> next_of;
  std::vector<std::size_t> silent_from;
  std::vector<bool> is_first;      // in its queue
  std::vector<bool> is_followed;   // by tasks of other queues of its rank
  std::vector<bool> has_kernels;   // on its own
  std::vector<bool> is_by_engine;  // the copy engine alone does its work, if any
  // By allocation, each task once:
  std::vector<std::vector<TaskId>> readers;
  std::vector<std::vector<TaskId>> writers;

  std::vector<std::int32_t> first_signal;  // by rank
  std::string_view pass;                   // that is at work
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
