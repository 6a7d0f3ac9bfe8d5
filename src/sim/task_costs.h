#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "machine/machine.h"
#include "plan/plan.h"
#include "plan/work.h"
#include "sim/cost.h"
#include "sim/kernel_work.h"
#include "sim/simulate.h"
#include "sim/task_launches.h"
#include "sim/variants.h"

namespace harpe {

// The bytes that a task moves from one rank to another.
struct Crossing {
  RankId from;
  RankId to;
  double bytes = 0;
};

// The cost of each task of a plan on a machine, as the launch plan launches it.
class TaskCosts {
 public:
  // Requires: check_fits; all arguments outlive this.
  TaskCosts(const Plan& plan, const launch::LaunchPlan& launches, const Machine& machine,
            const ResourceMap& map, const Idealisation& ideal);

  [[nodiscard]] const TaskLaunches& launches() const { return launches_; }
  // For every kind but Collective, whose members' costs depend on each other (collective).
  [[nodiscard]] Activity activity_of(TaskId task) const;
  [[nodiscard]] std::vector<Crossing> crossings(TaskId task) const;
  // The cost of a group. Requires: all its tasks, in rank order.
  [[nodiscard]] CollectiveCost collective_cost(const std::vector<TaskId>& members) const;
  // One member's part of its group's cost.
  [[nodiscard]] Activity collective(TaskId task, const CollectiveCost& cost) const;
  // True if kernels that an earlier task of its launch started do the task.
  [[nodiscard]] bool continues_launch(TaskId task) const;

  // The least time from the arrival of a task's operands until its whole launch, of several tasks,
  // is over. 0 where another task's time is as long, and for all other tasks.
  [[nodiscard]] Picoseconds held(TaskId task) const { return held_[task.index()]; }
  // True if it is the last task that the kernels of its launch compute.
  [[nodiscard]] bool is_last(TaskId task) const;
  // How long after its share of the work a task's last tile is stored, because thread blocks also
  // work on tiles of later tasks.
  [[nodiscard]] Picoseconds late(TaskId task) const { return late_[task.index()]; }
  // The share of the tasks' tiles that their last wave makes, all at once; where that is unknown,
  // the share of one task. Requires: tasks of one launch, at least one.
  [[nodiscard]] double last_wave(std::span<const TaskId> tasks) const;
  // How many whole tiles a thread block makes in the launch of the task; 1 where that is unknown.
  [[nodiscard]] double waves(TaskId task) const;

 private:
  // Computes of one launch and statement, whose tiles a kernel works through together.
  struct Group {
    std::vector<TaskId> tasks;
    bool masked = false;
    Activity activity;                    // of all tasks
    Picoseconds last;                     // what the last task takes alone
    bool tiled = false;                   // one GEMM, which takes what its tiles take
    std::optional<Tickets> tickets = {};  // of its tiles, where it stores them at other ranks
  };
  using LeafKey =
      std::tuple<std::string_view, DType, std::array<double, 7>, bool, std::int64_t, Supplier>;

  [[nodiscard]] RankId rank_of(const Task& task) const;
  [[nodiscard]] RankId rank_of(const Ref& ref) const;
  [[nodiscard]] DType dtype_of(const Ref& ref) const;
  [[nodiscard]] const Stmt& statement_of(const Task& task) const;
  [[nodiscard]] DType operand_type(const Task& task) const;
  [[nodiscard]] std::int64_t sms_of(const Task& task) const;
  [[nodiscard]] Supplier supplier_of(const Task& task) const;
  [[nodiscard]] double touched(const Task& task, const Ref& ref) const;
  [[nodiscard]] double arriving(const Task& task, std::size_t read) const;
  [[nodiscard]] double readings(TaskId task, std::size_t read, RankId from) const;
  [[nodiscard]] bool converts(const Task& task) const;
  [[nodiscard]] bool crosses_unrounded(const Task& task, int level) const;
  [[nodiscard]] double widening(const Task& task, std::size_t read) const;
  [[nodiscard]] std::vector<double> passes_of(const Task& task) const;
  [[nodiscard]] std::vector<double> passes_of_sum(const Task& task, Supplier by) const;
  [[nodiscard]] Activity compute(TaskId task) const;
  [[nodiscard]] Activity leaf_activity(TaskId id, const LaunchWork& work, bool masked);
  [[nodiscard]] std::int64_t sms_of_move(Via via) const;
  [[nodiscard]] Activity added_at_home(TaskId id) const;
  [[nodiscard]] bool is_by_engine(TaskId id) const;
  [[nodiscard]] bool is_tiled(TaskId id) const;
  [[nodiscard]] Activity transfer(TaskId id) const;
  [[nodiscard]] Activity fused_copy(TaskId id) const;
  [[nodiscard]] Activity pass(TaskId id) const;
  [[nodiscard]] Picoseconds kernel_starts(TaskId id) const;
  void take(Activity& activity, Picoseconds work) const;
  void group();
  void measure(Group& group);
  [[nodiscard]] Picoseconds tiled_time(const Tickets& tickets, const Group& group,
                                       const LaunchWork& work) const;
  [[nodiscard]] const LeafRate& rate_of(const Task& task) const;
  [[nodiscard]] double clock_of(const LeafRate& rate) const;
  void price_streams(Group& group, const LaunchWork& work) const;
  [[nodiscard]] double copied_bytes(const Group& group) const;
  void slow_down(Group& group) const;
  void measure_alone(Group& group, std::span<const TaskPart> parts);
  void hold_tiles(const Group& group, std::span<const TaskPart> parts,
                  const std::optional<Tickets>& tickets);
  [[nodiscard]] std::optional<Tickets> tickets_of(const Group& group,
                                                  std::span<const TaskPart> parts) const;
  [[nodiscard]] LaunchWork work_of(const Group& group, std::span<const TaskPart> parts) const;
  [[nodiscard]] TaskPart part_of(TaskId task) const;
  [[nodiscard]] double bytes_of(const Ref& ref) const;
  [[nodiscard]] bool passes_memory(AllocId alloc) const;
  void reach_other_ranks(const Task& task, Activity& activity) const;

  const Plan& plan_;
  const Machine& machine_;
  const ResourceMap& map_;
  Idealisation ideal_;
  PlanWork work_;
  TaskLaunches launches_;
  std::vector<char> in_16_bits_;  // per allocation: stored as 16-bit partials
  bool routed_ = false;
  std::vector<TaskWork> shapes_;     // per task, for computes
  std::vector<double> flops_;        // per rank, of all its computes
  std::vector<std::int32_t> group_;  // per task, for computes with work; else -1
  std::vector<double> shares_;       // per task: its share of its group's time
  std::vector<Picoseconds> held_;    // per task, as the next two
  std::vector<Picoseconds> late_;
  std::vector<std::size_t> panel_;
  std::vector<char> raises_;  // per task: it raises a signal on another rank
  std::vector<Group> groups_;
  std::map<LeafKey, Activity> leaves_;  // leaves that are priced already
};

}  // namespace harpe
