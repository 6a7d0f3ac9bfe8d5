#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "machine/machine.h"
#include "plan/plan.h"
#include "plan/work.h"
#include "sim/cost.h"
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
  // Requires: check_fits; all outlive this.
  TaskCosts(const Plan& plan, const Machine& machine, const ResourceMap& map,
            const Idealisation& ideal);

  // Of every kind but Collective, whose members' costs hang together (collective).
  [[nodiscard]] Activity activity_of(TaskId task) const;
  [[nodiscard]] std::vector<Crossing> crossings(TaskId task) const;
  // Of a group. Requires: all its tasks, in rank order.
  [[nodiscard]] CollectiveCost collective_cost(const std::vector<TaskId>& members) const;
  // One member's part of what its group costs.
  [[nodiscard]] Activity collective(TaskId task, const CollectiveCost& cost) const;
  // Does it run in a kernel that an earlier task of its lane launched?
  [[nodiscard]] bool continues_kernel(TaskId task) const { return continues_[task.index()]; }

 private:
  // Tasks of one launch and statement: a kernel works through their tiles together.
  using KernelKey = std::tuple<std::int32_t, std::int32_t, std::string, int>;

  [[nodiscard]] RankId rank_of(const Task& task) const;
  [[nodiscard]] RankId rank_of(const Ref& ref) const;
  [[nodiscard]] const Stmt& statement_of(const Task& task) const;
  [[nodiscard]] std::int64_t sms_of(const Task& task) const;
  [[nodiscard]] double memory_bytes(const Task& task) const;
  [[nodiscard]] double arriving(const Task& task, std::size_t read) const;
  [[nodiscard]] Activity compute(TaskId task) const;
  [[nodiscard]] Activity transfer(const Task& task) const;
  void find_kernels();
  void measure();
  void reach_other_ranks(const Task& task, Activity& activity) const;

  const Plan& plan_;
  const Machine& machine_;
  const ResourceMap& map_;
  Idealisation ideal_;
  PlanWork work_;
  bool routed_ = false;
  std::vector<LeafShape> shapes_;  // per task: of computes
  std::vector<char> masked_;
  std::vector<char> continues_;
  std::map<KernelKey, LeafShape> kernels_;  // flops and bytes summed
};

}  // namespace harpe
