#pragma once

#include <vector>

#include "plan/plan.h"

namespace harpe::sync {

// Tasks that the schedule made one kernel (fuse, chunk), in the order of their queue: they may be
// one launch that waits inside for what each of them needs.
struct Groups {
  std::vector<std::vector<TaskId>> members;
  std::vector<int> of_task;  // index into members, or -1

  [[nodiscard]] int of(TaskId task) const { return of_task[task.index()]; }
  [[nodiscard]] bool is_inside(TaskId task) const { return of(task) >= 0; }
};

// Of two tasks and more, beside each other in their queue, each waiting for one signal at most.
// Where the signals of members, raised at their kernel's end, would close a circle, the last group
// on it is none.
// Requires: a verified plan.
[[nodiscard]] Groups find_groups(const Plan& plan);
// Of what runs each task by itself.
[[nodiscard]] Groups no_groups(const Plan& plan);

}  // namespace harpe::sync
