#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "plan/launch_plan.h"
#include "plan/plan.h"

namespace harpe {

// How a launch plan executes a task.
enum class DoneBy : std::uint8_t {
  Itself,      // by kernels of its own, a copy engine, or nothing at all
  Kernel,      // a Compute: by its launch's kernel, which may do further ones
  FusedCopy,   // a Copy: by thread blocks of a kernel that does other work
  FusedStore,  // a Copy: a kernel stores its results there
  Total,       // a Finalise: a kernel adds what others stored here, then rounds
  Rounding,    // a Finalise: a kernel rounds what it stores
  Nothing,     // no task reads any more what it would copy
};

// How a launch plan executes each task of its plan. In a launch plan without launches every task is
// launched by itself.
class TaskLaunches {
 public:
  // Requires: both arguments outlive this.
  TaskLaunches(const Plan& plan, const launch::LaunchPlan& launches);

  [[nodiscard]] DoneBy by(TaskId task) const { return by_[task.index()]; }
  // Null where every task is launched by itself.
  [[nodiscard]] const launch::Launch* of(TaskId task) const {
    return at_.empty() ? nullptr : &launches_.launches[at(task)];
  }
  // The index of its launch; without launches, the index of the task.
  [[nodiscard]] std::size_t at(TaskId task) const {
    return at_.empty() ? task.index() : at_[task.index()];
  }
  // The first task of its launch.
  [[nodiscard]] TaskId lead(TaskId task) const { return at_.empty() ? task : leads_[at(task)]; }
  // All tasks in plan order, except for sums that a kernel makes: those that it stores at other
  // ranks come before those that stay.
  [[nodiscard]] const std::vector<TaskId>& order() const { return order_; }
  // The computes of its launch that make what a FusedStore stores, or the totals that it stores, in
  // the order in which the kernel does them.
  [[nodiscard]] std::vector<TaskId> makers(TaskId store) const;
  // The totals that a FusedStore stores.
  [[nodiscard]] std::vector<TaskId> totals(TaskId store) const;
  // How many FusedStores store these totals; 0 if it stores none.
  [[nodiscard]] std::int64_t receivers(TaskId store) const;
  // The number of kernels of its launch; 1 where that is unknown.
  [[nodiscard]] std::int64_t kernels(TaskId task) const;
  // The variant of the first kernel of its launch; empty where there is none.
  [[nodiscard]] std::string_view variant(TaskId task) const;
  // True if its launch is a kernel of few rows, which makes all its sums at the end.
  [[nodiscard]] bool is_streamed(TaskId task) const;
  // True if threads of its launch's kernel store sums and load those of other ranks.
  [[nodiscard]] bool moves_by_threads(TaskId task) const;
  // True if its launch waits for signals, or for launches other than the Entry's.
  [[nodiscard]] bool follows_others(TaskId task) const;
  // True if the elements that a FusedStore stores signal their own arrival.
  [[nodiscard]] bool is_in_data(TaskId store) const;
  // True if only a copy engine does the task. Requires: launches.
  [[nodiscard]] bool is_by_engine(TaskId task) const;
  // True if the launch before it in its queue is a copy engine's. Requires: launches.
  [[nodiscard]] bool follows_engine(TaskId task) const { return behind_engine_[at(task)] != 0; }
  // True if NCCL does the task's collective. False where launches are unknown.
  [[nodiscard]] bool is_by_nccl(TaskId task) const;
  // True if the rank's Entry has no kernel of its own, because another kernel bounds the execution.
  [[nodiscard]] bool bounds_epoch(RankId rank) const { return bounded_.contains(rank); }
  // True if its launch waits, before its first kernel, for a signal that a copy engine raises.
  [[nodiscard]] bool awaits_engine(TaskId task) const;
  // True if that kernel's thread blocks have to agree that all have ended, because the Exit awaits
  // or raises signals.
  [[nodiscard]] bool agrees_to_end(TaskId exit) const;
  // The thread blocks that make a FusedCopy; 0 for other tasks.
  [[nodiscard]] std::int64_t copy_blocks(TaskId task) const;
  // True if the task's launch waits, before its first kernel or inside, for what an earlier task
  // makes. It does not if a kernel reads the operands themselves instead of a copy.
  [[nodiscard]] bool waits(TaskId task, TaskId before) const;
  // True if the task waits inside the kernel, by itself, and not before its launch's first kernel.
  [[nodiscard]] bool waits_inside(TaskId task) const;

 private:
  void note(const launch::Launch& launch, std::size_t at);
  void send_first(const launch::Launch& launch, std::size_t at);
  [[nodiscard]] bool takes(TaskId copy, TaskId maker) const;
  [[nodiscard]] bool is_local_copy(const Task& task) const;

  const Plan& plan_;
  const launch::LaunchPlan& launches_;
  std::vector<std::size_t> at_;  // by task, as by_
  std::vector<DoneBy> by_;
  std::vector<char> inside_;         // by launch: a kernel waits for signals
  std::vector<char> behind_engine_;  // by launch
  std::vector<TaskId> leads_;
  std::vector<TaskId> order_;
  std::set<RankId> bounded_;
};

}  // namespace harpe
