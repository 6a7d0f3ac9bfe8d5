#include "exec/cuda/executor/groups.h"

#include <algorithm>
#include <map>
#include <utility>

#include "exec/cuda/executor/nodes.h"
#include "exec/describe.h"

namespace harpe::cuda {
namespace {

std::vector<std::vector<TaskId>> queues_of(const Plan& plan) {
  std::vector<std::vector<TaskId>> queues(plan.queues.size());
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    queues[plan.tasks[i].queue.index()].emplace_back(static_cast<std::int64_t>(i));
  }
  return queues;
}

// Behind a put of its own rank a task waits for what the whole queue has put.
std::vector<int> count_waits(const Plan& plan) {
  constexpr int kMany = 2;
  std::vector<int> waits(plan.tasks.size(), 0);
  for (const Sync& sync : plan.syncs) {
    const bool drains =
        goes_out(plan, sync.from) && rank_of(plan, sync.from) == rank_of(plan, sync.to);
    waits[sync.to.index()] += drains ? kMany : 1;
  }
  for (const Barrier& barrier : plan.barriers) {
    for (const TaskId to : barrier.to) ++waits[to.index()];
  }
  return waits;
}

Groups find_candidates(const Plan& plan) {
  Groups groups{.members = {}, .of_task = std::vector<int>(plan.tasks.size(), -1)};
  const std::vector<int> waits = count_waits(plan);
  const auto kernel_of = [&](TaskId task) {
    const Task& one = plan.tasks[task.index()];
    return one.kind == TaskKind::Compute ? one.kernel : -1;
  };
  for (const std::vector<TaskId>& queue : queues_of(plan)) {
    for (std::size_t first = 0; first < queue.size();) {
      std::size_t end = first + 1;
      const std::int32_t kernel = kernel_of(queue[first]);
      while (kernel >= 0 && end < queue.size() && kernel_of(queue[end]) == kernel) ++end;
      const auto begin = queue.begin() + static_cast<std::ptrdiff_t>(first);
      const std::vector<TaskId> run(begin, queue.begin() + static_cast<std::ptrdiff_t>(end));
      const bool simple =
          std::ranges::all_of(run, [&](TaskId task) { return waits[task.index()] <= 1; });
      if (run.size() > 1 && simple) {
        for (const TaskId task : run) {
          groups.of_task[task.index()] = static_cast<int>(groups.members.size());
        }
        groups.members.push_back(run);
      }
      first = end;
    }
  }
  return groups;
}

// The plan's order with groups as kernels: a member starts when its signal is there, and all of a
// group are over when its last is.
class Order {
 public:
  Order(const Plan& plan, const Groups& groups) : groups_(groups), next_(plan.tasks.size()) {
    for (const std::vector<TaskId>& queue : queues_of(plan)) {
      for (std::size_t i = 1; i < queue.size(); ++i) add(queue[i - 1], queue[i]);
    }
    for (const Sync& sync : plan.syncs) add(sync.from, sync.to);
    for (const Barrier& barrier : plan.barriers) {
      for (const TaskId from : barrier.from) {
        for (const TaskId to : barrier.to) add(from, to);
      }
    }
    meet(plan);
  }

  [[nodiscard]] bool has_cycle() const {
    std::vector<int> before(next_.size(), 0);
    for (const std::vector<std::size_t>& edges : next_) {
      for (const std::size_t to : edges) ++before[to];
    }
    std::vector<std::size_t> ready;
    for (std::size_t node = 0; node < next_.size(); ++node) {
      if (before[node] == 0) ready.push_back(node);
    }
    std::size_t done = 0;
    for (; done < ready.size(); ++done) {
      for (const std::size_t to : next_[ready[done]]) {
        if (--before[to] == 0) ready.push_back(to);
      }
    }
    return done < next_.size();
  }

 private:
  void add(TaskId from, TaskId to) {
    const int group = groups_.of(from);
    const bool leaves = group >= 0 && groups_.of(to) != group;
    const TaskId end = leaves ? groups_.members[static_cast<std::size_t>(group)].back() : from;
    next_[end.index()].push_back(to.index());
  }

  // Members of a collective go on once all have come: what is before one is before all.
  void meet(const Plan& plan) {
    std::map<std::int32_t, std::vector<std::size_t>> members;
    for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
      if (plan.tasks[i].kind == TaskKind::Collective) members[plan.tasks[i].group].push_back(i);
    }
    std::map<std::size_t, std::size_t> meetings;  // of a member
    for (const auto& [group, tasks] : members) {
      for (const std::size_t task : tasks) meetings[task] = next_.size();
      next_.emplace_back(tasks);
    }
    for (std::size_t node = 0; node < plan.tasks.size(); ++node) {
      const std::vector<std::size_t> edges = next_[node];
      for (const std::size_t to : edges) {
        if (const auto at = meetings.find(to); at != meetings.end()) {
          next_[node].push_back(at->second);
        }
      }
    }
  }

  const Groups& groups_;
  std::vector<std::vector<std::size_t>> next_;
};

}  // namespace

Groups find_groups(const Plan& plan) {
  Groups groups = find_candidates(plan);
  if (groups.members.empty() || !Order(plan, groups).has_cycle()) return groups;
  return {.members = {}, .of_task = std::vector<int>(plan.tasks.size(), -1)};
}

}  // namespace harpe::cuda
