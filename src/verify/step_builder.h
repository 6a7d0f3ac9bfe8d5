#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "verify/steps.h"

namespace harpe::verifier {

[[nodiscard]] inline bool has_panels(const launch::Kernel& kernel) {
  return !kernel.panels.empty() || !kernel.fused_copies.empty();
}

[[nodiscard]] inline Task make_task(QueueId queue, TaskKind kind) {
  Task task;
  task.queue = queue;
  task.kind = kind;
  return task;
}

// Appends the steps of launches and their order.
class StepBuilder {
 public:
  explicit StepBuilder(Steps& out) : out_(out) {}
  [[nodiscard]] const Steps& out() const { return out_; }

  // Adds the memory of the plan and of the launch plan. `private_from`: their number of
  // allocations.
  void begin(const Plan& plan, const launch::LaunchPlan& launches, std::size_t private_from);
  // Later steps belong to this launch.
  void enter(launch::LaunchId launch, QueueId queue);

  // Append to the launch's queue.
  void add(StepKind kind);
  void add_task(TaskId id, Task task);
  // Starts a queue that runs beside other forks, after the launch queue's steps so far.
  [[nodiscard]] QueueId fork();
  std::int32_t add_forked(const StepOrigin& origin, Task task);
  // Appends to the launch's queue a step after all forks.
  void join(std::int32_t kernel);
  // Memory that only this launch's kernel accesses, for partial states or values.
  [[nodiscard]] AllocId add_private(const std::string& name, const std::string& buffer, DType dtype,
                                    std::vector<bool> holds, Level level = Level::Acc);

  void order(std::int32_t from, std::int32_t to);
  void await(launch::SignalId signal, std::int32_t step);
  void await(launch::SignalId signal, const AwaitedReads& reads);
  void raise(const launch::Raise& raise, std::int32_t step);
  // Raised once by the last of several steps, after all of them.
  void raise_behind(const launch::Raise& raise, const std::vector<std::int32_t>& steps);
  // Appends the second execution. `groups`: number of collective groups in the first.
  void repeat(std::int32_t groups);

 private:
  [[nodiscard]] std::int32_t push(const StepOrigin& origin, Task task);
  void push_to_queue(const StepOrigin& origin, Task task);
  void add_signals(bool in_data);

  Steps& out_;
  const launch::LaunchPlan* launches_ = nullptr;
  launch::LaunchId launch_;
  QueueId queue_;
  bool has_steps_ = false;  // whether the launch's queue has steps of the current launch
  std::vector<std::int32_t> fork_first_;  // per fork since the last join
  std::vector<std::int32_t> fork_last_;
  std::vector<std::vector<QueueId>> forks_;  // per queue of launches: from the second fork on
  std::vector<std::pair<std::int32_t, std::int32_t>> edges_;
};

}  // namespace harpe::verifier
