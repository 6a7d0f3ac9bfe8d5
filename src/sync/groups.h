#pragma once

#include <vector>

#include "plan/plan.h"

namespace harpe::sync {

// Tasks that the schedule fused into one kernel (fuse, chunk), in queue order. They may become one
// launch that waits inside for the signal of each task.
struct Groups {
  std::vector<std::vector<TaskId>> members;
  std::vector<int> of_task;  // index into members, or -1

  [[nodiscard]] int of(TaskId task) const { return of_task[task.index()]; }
  [[nodiscard]] bool is_inside(TaskId task) const { return of(task) >= 0; }
};

// Groups of at least two tasks that are adjacent in their queue and wait for at most one signal
// each. A group raises its signals when its kernel ends. Where that would close a cycle of waits,
// the last group on the cycle is dissolved. Requires: a verified plan.
[[nodiscard]] Groups find_groups(const Plan& plan);
// For executors that run each task by itself.
[[nodiscard]] Groups no_groups(const Plan& plan);

}  // namespace harpe::sync
