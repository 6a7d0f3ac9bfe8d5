#pragma once

#include <span>
#include <string>
#include <vector>

#include "exec/cuda/kernels/plan_launches.h"
#include "exec/cuda/target/kernel_places.h"
#include "plan/launch_plan.h"

namespace harpe::cuda {

// What a task runs alone: its launches, each as a kernel with places, and what the task names.
struct TaskAlone {
  LaunchSpecs specs;
  std::vector<launch::Kernel> kernels;
  std::vector<LaidRef> refs;  // its writes, then its reads
  // Valid: the task runs what that one does, but for where its references are; its own specs
  // are empty.
  TaskId like = {};
  // Then, by kernel: how much further queries are ahead of keys than in that task.
  std::vector<std::int64_t> leads = {};
};

// The task itself, or the one that it is like.
[[nodiscard]] inline const TaskAlone& prepared_of(const std::vector<TaskAlone>& alone,
                                                  TaskId task) {
  const TaskAlone& own = alone[task.index()];
  return own.like.valid() ? alone[own.like.index()] : own;
}

[[nodiscard]] std::vector<LaidRef> lay_refs(RefLayouts& layouts, const Task& task);
// What launches of tasks alone are called, and where they read and store: with arrivals and panels
// where kernels have them, and without signals. `refs`: what the tasks name.
[[nodiscard]] std::vector<launch::Kernel> describe_kernels(const SpecSource& source,
                                                           std::span<const LaidRef> refs,
                                                           const LaunchSpecs& specs);
// Moves places of kernels from references of one task to those of another that is like it. False
// where one is of neither, and some may have been moved.
[[nodiscard]] bool move_places(std::vector<launch::Kernel>& kernels,
                               const std::vector<LaidRef>& from, const std::vector<LaidRef>& to);
// Kernels of the task that this one is like, where this one has its operands.
[[nodiscard]] std::vector<launch::Kernel> kernels_like(const std::vector<LaidRef>& refs,
                                                       const TaskAlone& like,
                                                       std::vector<launch::Kernel> kernels);
// `specs` are the task's own.
[[nodiscard]] TaskAlone describe_alone(const SpecSource& source, TaskId task, LaunchSpecs specs);

}  // namespace harpe::cuda
