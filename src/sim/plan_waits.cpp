#include "sim/plan_waits.h"

namespace harpe {

std::vector<std::vector<PlanWait>> waits_of(const Plan& plan) {
  std::vector<std::vector<PlanWait>> waits(plan.tasks.size());
  std::vector<TaskId> last(plan.queues.size());
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    TaskId& before = last[plan.tasks[i].queue.index()];
    if (before.valid()) waits[i].push_back({.from = before, .kind = WaitKind::Queue});
    before = TaskId(static_cast<std::int64_t>(i));
  }
  for (const Sync& sync : plan.syncs) {
    const WaitKind kind = sync.kind == SyncKind::Event ? WaitKind::Event : WaitKind::Signal;
    waits[sync.to.index()].push_back({.from = sync.from, .kind = kind});
  }
  for (const Barrier& barrier : plan.barriers) {
    for (const TaskId to : barrier.to) {
      for (const TaskId from : barrier.from) {
        waits[to.index()].push_back({.from = from, .kind = WaitKind::Barrier});
      }
    }
  }
  return waits;
}

}  // namespace harpe
