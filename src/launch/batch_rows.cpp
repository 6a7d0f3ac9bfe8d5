#include <algorithm>

#include "launch/join.h"
#include "launch/passes.h"

namespace harpe::launch {
namespace {

class RowBatcher {
 public:
  explicit RowBatcher(Draft& draft) : draft_(draft) {}

  void batch(std::size_t at) {
    Step& step = draft_.steps[at];
    for (const TaskId behind : run_behind(step.launch.does.front())) {
      draft_.join(at, draft_.step_at[behind.index()]);
    }
    const std::size_t before = count_kernels(step);
    if (before < 2) return;
    step.launch.kernels = joined_kernels(step);
    if (step.launch.kernels.size() < before) draft_.applied(step.launch.does.front());
  }

 private:
  [[nodiscard]] std::size_t count_kernels(const Step& step) const {
    std::size_t count = 0;
    for (const TaskId id : step.launch.does) count += own_kernels(id).size();
    return count;
  }

  // The step that a joined task had keeps the task's own kernels.
  [[nodiscard]] const std::vector<Kernel>& own_kernels(TaskId id) const {
    return draft_.steps[draft_.position[id.index()]].launch.kernels;
  }

  [[nodiscard]] std::vector<Kernel> joined_kernels(const Step& step) const {
    std::vector<AwaitedKernel> kernels;
    for (const TaskId id : step.launch.does) {
      for (const Kernel& kernel : own_kernels(id)) {
        kernels.push_back({.task = id, .kernel = &kernel});
      }
    }
    const Result<Kernel, Refused> one = join_kernels(draft_, kernels);
    if (one && draft_.offers.choose(step.launch, *one)) return {*one};
    return draft_.offers.batched(step.launch.does);
  }

  // The tasks behind `first` that do the same to further ragged rows, as long as nothing is awaited
  // or raised in between.
  [[nodiscard]] std::vector<TaskId> run_behind(TaskId first) {
    std::vector<TaskId> run;
    const Task& task = draft_.task(first);
    if (task.kind != TaskKind::Compute || !draft_.offers.counts_rows(first)) return run;
    TaskId last = first;
    for (auto next = draft_.next(last); next; next = draft_.next(last)) {
      const Task& other = draft_.task(*next);
      if (other.kind != task.kind || other.nest != task.nest || other.stmt != task.stmt ||
          !draft_.offers.counts_rows(*next)) {
        break;
      }
      const sync::TaskWiring& wiring = draft_.wiring_of(*next);
      const std::size_t waits = wiring.waits.size() + wiring.after.size();
      if (waits > 0 || !draft_.wiring_of(last).raises.empty() || draft_.is_followed[last.index()]) {
        draft_.refuse(first, Reason::SignalBetween, last.value, next->value);
        break;
      }
      run.push_back(last = *next);
    }
    return run;
  }

  Draft& draft_;
};

}  // namespace

void batch_rows(Draft& draft) {
  RowBatcher batcher(draft);
  for (std::size_t at = 0; at < draft.steps.size(); ++at) {
    const Step& step = draft.steps[at];
    if (!step.is_joined && !step.waits_inside && !step.launch.lands) batcher.batch(at);
  }
}

}  // namespace harpe::launch
