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

// Appends steps of launches, and what orders them.
class StepBuilder {
 public:
  explicit StepBuilder(Steps& out) : out_(out) {}
  [[nodiscard]] const Steps& out() const { return out_; }

  // The plan's memory and that of the launch plan; `private_from`: allocations in all.
  void begin(const Plan& plan, const launch::LaunchPlan& launches, std::size_t private_from);
  // From now on steps are this launch's.
  void enter(launch::LaunchId launch, QueueId queue);

  // In the launch's queue.
  void add(StepKind kind);
  void add_task(TaskId id, Task task);
  // Beside what else is forked, behind what the launch's queue has so far. Returns the queue.
  [[nodiscard]] QueueId fork();
  std::int32_t add_forked(const StepOrigin& origin, Task task);
  // All that was forked is over: in the launch's queue.
  void join(std::int32_t kernel);
  // Memory that only this launch's kernel sees: of partial states, or of values.
  [[nodiscard]] AllocId add_private(const std::string& name, const std::string& buffer, DType dtype,
                                    std::vector<bool> holds, Level level = Level::Acc);

  void order(std::int32_t from, std::int32_t to);
  void await(launch::SignalId signal, std::int32_t step);
  void await(launch::SignalId signal, const AwaitedReads& reads);
  void raise(const launch::Raise& raise, std::int32_t step);
  // By the last of several steps, once all are over: counts once.
  void raise_behind(const launch::Raise& raise, const std::vector<std::int32_t>& steps);
  // The second execution. `groups`: numbers of collective groups in the first.
  void repeat(std::int32_t groups);

 private:
  [[nodiscard]] std::int32_t push(const StepOrigin& origin, Task task);
  void push_to_queue(const StepOrigin& origin, Task task);
  void add_signals(bool in_data);

  Steps& out_;
  const launch::LaunchPlan* launches_ = nullptr;
  launch::LaunchId launch_;
  QueueId queue_;
  bool has_steps_ = false;                // of the launch at hand, in its queue
  std::vector<std::int32_t> fork_first_;  // per fork since the last join
  std::vector<std::int32_t> fork_last_;
  std::vector<std::vector<QueueId>> forks_;  // per queue of launches: those of the second fork on
  std::vector<std::pair<std::int32_t, std::int32_t>> edges_;
};

}  // namespace harpe::verifier
