#include "exec/cpu/prepare_steps.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "exec/cpu/panel_work.h"
#include "exec/cpu/signals.h"
#include "support/check.h"

namespace harpe::cpu {
namespace {

using actions::TaskWork;

// Prepares the steps of a queue in order; steps of one launch are adjacent.
class QueuePreparer {
 public:
  QueuePreparer(const actions::Setting& setting, const launch::LaunchPlan& launches)
      : setting_(setting), launches_(launches) {}

  Checked<TaskWork> prepare(const Step& step) {
    if (step.begins) {
      panels_.emplace(setting_, launches_.launches[step.launch.index()], step.launch);
    }
    TaskWork work;
    for (const Part& part : step.parts) {
      HP_TRY(TaskWork more, std::visit([&](const auto& one) { return prepare(one); }, part));
      std::ranges::move(more.actions, std::back_inserter(work.actions));
      std::ranges::move(more.shares, std::back_inserter(work.shares));
    }
    return work;
  }

 private:
  Checked<TaskWork> prepare(TaskId task) {
    return actions::prepare_task(setting_, setting_.plan.tasks[task.index()]);
  }
  Checked<TaskWork> prepare(const PanelPart& part) { return panels_->prepare(part); }
  Checked<TaskWork> prepare(const CopyPart& part) { return panels_->prepare(part); }

  const actions::Setting& setting_;
  const launch::LaunchPlan& launches_;
  std::optional<PanelWork> panels_;  // of the current launch
};

}  // namespace

Checked<StepWork> prepare_steps(const actions::Setting& setting, const launch::LaunchPlan& launches,
                                const LaunchSteps& steps, const processes::Partition& partition) {
  StepWork work(steps.queues.size());
  for (std::size_t queue = 0; queue < work.size(); ++queue) {
    work[queue].resize(steps.queues[queue].size());
    if (!partition.is_own(setting.plan.queues[queue].rank)) continue;
    QueuePreparer preparer(setting, launches);
    for (std::size_t at = 0; at < work[queue].size(); ++at) {
      HP_TRY(work[queue][at], preparer.prepare(steps.queues[queue][at]));
    }
  }
  return work;
}

}  // namespace harpe::cpu
