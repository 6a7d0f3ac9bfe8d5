#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "machine/machine.h"
#include "plan/plan.h"
#include "plan/work.h"
#include "sim/at_home.h"
#include "sim/cost.h"
#include "sim/kernel_work.h"
#include "sim/simulate.h"

namespace harpe {

// What crosses from one rank to another for a task.
struct Crossing {
  RankId from;
  RankId to;
  double bytes = 0;
};

// What each task of a plan costs on a machine, by itself. No launches are left out here but those
// of tasks that run in a kernel which is already there.
class TaskCosts {
 public:
  // `fused_stores`: those of the plan. Requires: check_fits; all outlive this.
  TaskCosts(const Plan& plan, const Machine& machine, const ResourceMap& map,
            const Idealisation& ideal, const std::vector<std::vector<TaskId>>& fused_stores);

  // Of every kind but Collective, whose members' costs hang together (collective).
  [[nodiscard]] Activity activity_of(TaskId task) const;
  [[nodiscard]] std::vector<Crossing> crossings(TaskId task) const;
  // Of a group. Requires: all its tasks, in rank order.
  [[nodiscard]] CollectiveCost collective_cost(const std::vector<TaskId>& members) const;
  // One member's part of what its group costs.
  [[nodiscard]] Activity collective(TaskId task, const CollectiveCost& cost) const;
  // Does it run in a kernel that an earlier task of its queue launched?
  [[nodiscard]] bool continues_kernel(TaskId task) const {
    return continues_[task.index()] != 0 || at_home_.rounded[task.index()] != 0;
  }

  // From what the last task of a launch of several waits for until that is over, at least: however
  // many processors are free by then, its own tiles take so long. 0 of all others.
  [[nodiscard]] Picoseconds alone(TaskId task) const;

 private:
  // Tasks of one launch and statement: a kernel works through their tiles together.
  using KernelKey = std::tuple<std::int32_t, std::int32_t, std::string, int>;
  struct Kernel {
    std::vector<TaskId> tasks;
    bool masked = false;
    bool sends = false;  // sums leave as they are made
    Activity activity;   // of all tasks
    Picoseconds alone;   // what the last task takes by itself, where it waits for no other
  };

  [[nodiscard]] RankId rank_of(const Task& task) const;
  [[nodiscard]] RankId rank_of(const Ref& ref) const;
  [[nodiscard]] DType dtype_of(const Ref& ref) const;
  [[nodiscard]] const Stmt& statement_of(const Task& task) const;
  [[nodiscard]] std::string operand_type(const Task& task) const;
  [[nodiscard]] std::int64_t sms_of(const Task& task) const;
  [[nodiscard]] Supplier supplier_of(const Task& task) const;
  [[nodiscard]] double touched(const Task& task, const Ref& ref) const;
  [[nodiscard]] double arriving(const Task& task, std::size_t read) const;
  [[nodiscard]] double readings(TaskId task, std::size_t read, RankId from) const;
  [[nodiscard]] bool converts(const Task& task) const;
  [[nodiscard]] bool crosses_unrounded(const Task& task, int level) const;
  [[nodiscard]] double widening(const Task& task, std::size_t read) const;
  [[nodiscard]] std::vector<double> passes_of(const Task& task) const;
  [[nodiscard]] std::vector<double> passes_of_sum(const Task& task) const;
  [[nodiscard]] Activity compute(TaskId task) const;
  [[nodiscard]] Activity leaf_activity(const Task& task, const LaunchWork& work, bool masked) const;
  [[nodiscard]] std::int64_t sms_of_move(Via via) const;
  [[nodiscard]] Activity added_at_home(const Task& finalise) const;
  [[nodiscard]] Activity transfer(const Task& task) const;
  void find_kernels(const std::vector<std::vector<TaskId>>& fused_stores);
  void take(Activity& activity, Picoseconds work) const;
  void measure();
  void measure(Kernel& kernel);
  void measure_alone(Kernel& kernel, std::span<const LaunchPart> parts);
  [[nodiscard]] LaunchPart part_of(TaskId task) const;
  void reach_other_ranks(const Task& task, Activity& activity) const;

  const Plan& plan_;
  const Machine& machine_;
  const ResourceMap& map_;
  Idealisation ideal_;
  PlanWork work_;
  AtHome at_home_;
  bool routed_ = false;
  std::vector<LeafShape> shapes_;       // per task: of computes
  std::vector<const Kernel*> kernel_;   // per task: of computes
  std::vector<double> shares_;          // per task: of its kernel's time
  std::vector<char> waits_;             // per task: for another but an Entry, beside its queue
  std::vector<char> raises_;            // per task: a signal on another rank
  std::vector<std::int32_t> launches_;  // per task: its kernel's number, or one of its own
  std::vector<char> sends_;             // per task: of a Compute whose sums leave as they are made
  std::vector<char> continues_;
  std::map<KernelKey, Kernel> kernels_;
};

}  // namespace harpe
