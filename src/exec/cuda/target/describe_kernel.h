#pragma once

#include <span>
#include <string>
#include <vector>

#include "exec/cuda/kernels/plan_launches.h"
#include "exec/cuda/target/kernel_places.h"
#include "plan/launch_plan.h"

namespace harpe::cuda {

// A task's own launches, each also as a kernel with places, and the task's references.
struct TaskAlone {
  LaunchSpecs specs;
  std::vector<launch::Kernel> kernels;
  std::vector<LaidRef> refs;  // its writes, then its reads
  // If valid: this task runs the launches of `like`, except for the places of its references; its
  // own specs are empty.
  TaskId like = {};
  // Then, by kernel: how much further queries are ahead of keys than in `like`.
  std::vector<std::int64_t> leads = {};
};

// The task's own entry, or that of the task that it is like.
[[nodiscard]] inline const TaskAlone& prepared_of(const std::vector<TaskAlone>& alone,
                                                  TaskId task) {
  const TaskAlone& own = alone[task.index()];
  return own.like.valid() ? alone[own.like.index()] : own;
}

[[nodiscard]] std::vector<LaidRef> lay_refs(RefLayouts& layouts, const Task& task);
// The names of tasks' own launches and where they read and store: with arrivals and panels if
// kernels have them, without signals. `refs`: the tasks' references.
[[nodiscard]] std::vector<launch::Kernel> describe_kernels(const SpecSource& source,
                                                           std::span<const LaidRef> refs,
                                                           const LaunchSpecs& specs);
// Moves places of kernels from references of one task to those of another that is like it. False if
// a place is in none of them; some places may have been moved then.
[[nodiscard]] bool move_places(std::vector<launch::Kernel>& kernels,
                               const std::vector<LaidRef>& from, const std::vector<LaidRef>& to);
// Kernels of the task `like`, with the operands of this task.
[[nodiscard]] std::vector<launch::Kernel> kernels_like(const std::vector<LaidRef>& refs,
                                                       const TaskAlone& like,
                                                       std::vector<launch::Kernel> kernels);
// `specs`: the task's own.
[[nodiscard]] TaskAlone describe_alone(const SpecSource& source, TaskId task, LaunchSpecs specs);

}  // namespace harpe::cuda
