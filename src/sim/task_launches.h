#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "plan/launch_plan.h"
#include "plan/plan.h"

namespace harpe {

// How a launch plan has a task done.
enum class DoneBy : std::uint8_t {
  Itself,      // by kernels of its own, a copy engine, or nothing at all
  Kernel,      // a Compute: by its launch's kernel, which may do further ones
  FusedCopy,   // a Copy: by thread blocks of a kernel that does other work
  FusedStore,  // a Copy: a kernel stores its results there
  Total,       // a Finalise: a kernel adds what others have stored here before it rounds
  Rounding,    // a Finalise: a kernel rounds what it stores
  Nothing,     // nothing reads any more what it would copy
};

// What a launch plan says of each task of its plan. A launch plan without launches has every task
// launched by itself.
class TaskLaunches {
 public:
  // Requires: both outlive this.
  TaskLaunches(const Plan& plan, const launch::LaunchPlan& launches);

  [[nodiscard]] DoneBy by(TaskId task) const { return by_[task.index()]; }
  // Null where every task is launched by itself.
  [[nodiscard]] const launch::Launch* of(TaskId task) const {
    return at_.empty() ? nullptr : &launches_.launches[at(task)];
  }
  // The index of its launch; of a plan without launches its own.
  [[nodiscard]] std::size_t at(TaskId task) const {
    return at_.empty() ? task.index() : at_[task.index()];
  }
  // The first task of its launch.
  [[nodiscard]] TaskId lead(TaskId task) const { return at_.empty() ? task : leads_[at(task)]; }
  // All tasks, the plan's in its order but for sums that a kernel makes: those that it stores at
  // other ranks come before those that stay.
  [[nodiscard]] const std::vector<TaskId>& order() const { return order_; }
  // The computes of its launch that make what a FusedStore takes, or the total that it takes, in
  // the order in which the kernel does them.
  [[nodiscard]] std::vector<TaskId> makers(TaskId store) const;
  // How many kernels its launch has; 1 where that is not known.
  [[nodiscard]] std::int64_t kernels(TaskId task) const;
  // Whether its launch is a kernel of few rows, which makes all its sums at the end.
  [[nodiscard]] bool is_streamed(TaskId task) const;
  // Whether its launch begins behind signals or other launches than the Entry's.
  [[nodiscard]] bool follows_others(TaskId task) const;
  // Of a FusedStore: whether what it stores says by itself that it is there.
  [[nodiscard]] bool is_in_data(TaskId store) const;
  // Whether a copy engine alone does the task. Requires: launches.
  [[nodiscard]] bool is_by_engine(TaskId task) const;
  // Whether NCCL does the task's collective. False where launches are not known.
  [[nodiscard]] bool is_by_nccl(TaskId task) const;
  // Whether the rank's Entry is no kernel of its own: another begins and ends the execution.
  [[nodiscard]] bool bounds_epoch(RankId rank) const { return bounded_.contains(rank); }
  // Of a FusedCopy, thread blocks that make it; else 0.
  [[nodiscard]] std::int64_t copy_blocks(TaskId task) const;
  // Whether the task's launch waits, before its first kernel or inside, for what a task before it
  // makes. It does not where a kernel reads the operands themselves and not a copy of them.
  [[nodiscard]] bool waits(TaskId task, TaskId before) const;
  // Whether it waits for this inside, by itself, and not before the first kernel of its launch.
  [[nodiscard]] bool waits_inside(TaskId task) const;

 private:
  void note(const launch::Launch& launch, std::size_t at);
  void send_first(const launch::Launch& launch, std::size_t at);
  [[nodiscard]] bool takes(TaskId copy, TaskId maker) const;
  [[nodiscard]] bool is_local_copy(const Task& task) const;

  const Plan& plan_;
  const launch::LaunchPlan& launches_;
  std::vector<std::size_t> at_;  // by task, as the next
  std::vector<DoneBy> by_;
  std::vector<char> inside_;  // by launch: a kernel waits for signals
  std::vector<TaskId> leads_;
  std::vector<TaskId> order_;
  std::set<RankId> bounded_;
};

}  // namespace harpe
