#include "sync/groups.h"

#include <algorithm>
#include <map>
#include <utility>

#include "plan/refs.h"
#include "support/check.h"
#include "sync/nodes.h"

namespace harpe::sync {
namespace {

std::vector<std::vector<TaskId>> queues_of(const Plan& plan) {
  std::vector<std::vector<TaskId>> queues(plan.queues.size());
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    queues[plan.tasks[i].queue.index()].emplace_back(static_cast<std::int64_t>(i));
  }
  return queues;
}

// A task behind a put of its own rank waits for all earlier puts of that queue, so it counts as
// many.
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

// The plan's order with groups as kernels: each member starts at its own signal, but all members
// end together when the last one ends.
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

  // Tasks and rendezvous of collectives that form a cycle of waits; empty if there is none.
  [[nodiscard]] std::vector<std::size_t> find_circle() const {
    const std::vector<int> before = count_unreached();
    std::vector<std::size_t> previous(next_.size());
    std::size_t at = next_.size();
    for (std::size_t node = 0; node < next_.size(); ++node) {
      if (before[node] == 0) continue;
      for (const std::size_t to : next_[node]) previous[to] = node;
      at = node;
    }
    if (at == next_.size()) return {};
    // A node that is not reached has a predecessor that is not reached, so going back finds a
    // cycle.
    std::vector<std::size_t> way;
    for (; std::ranges::find(way, at) == way.end(); at = previous[at]) way.push_back(at);
    way.erase(way.begin(), std::ranges::find(way, at));
    return way;
  }

 private:
  // By node: its number of edges from nodes that are never reached.
  [[nodiscard]] std::vector<int> count_unreached() const {
    std::vector<int> before(next_.size(), 0);
    for (const std::vector<std::size_t>& edges : next_) {
      for (const std::size_t to : edges) ++before[to];
    }
    std::vector<std::size_t> ready;
    for (std::size_t node = 0; node < next_.size(); ++node) {
      if (before[node] == 0) ready.push_back(node);
    }
    for (std::size_t done = 0; done < ready.size(); ++done) {
      for (const std::size_t to : next_[ready[done]]) {
        if (--before[to] == 0) ready.push_back(to);
      }
    }
    return before;
  }

  void add(TaskId from, TaskId to) {
    const int group = groups_.of(from);
    const bool leaves = group >= 0 && groups_.of(to) != group;
    const TaskId end = leaves ? groups_.members[static_cast<std::size_t>(group)].back() : from;
    next_[end.index()].push_back(to.index());
  }

  // Members of a collective proceed once all have arrived: what precedes one member precedes all.
  void meet(const Plan& plan) {
    std::map<std::int32_t, std::vector<std::size_t>> members;
    for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
      if (plan.tasks[i].kind == TaskKind::Collective) members[plan.tasks[i].group].push_back(i);
    }
    std::map<std::size_t, std::size_t> meetings;  // by member
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

// The last group whose end is on the cycle; that end also stands for the group's earlier members.
std::size_t last_on(const std::vector<std::size_t>& circle, const Groups& groups) {
  for (std::size_t group = groups.members.size(); group-- > 0;) {
    const std::size_t end = groups.members[group].back().index();
    if (std::ranges::find(circle, end) != circle.end()) return group;
  }
  HP_CHECK(false, "a verified plan has no circle without groups");
  return 0;
}

void drop(Groups& groups, std::size_t group) {
  for (const TaskId member : groups.members[group]) groups.of_task[member.index()] = -1;
  groups.members.erase(groups.members.begin() + static_cast<std::ptrdiff_t>(group));
  for (std::size_t later = group; later < groups.members.size(); ++later) {
    for (const TaskId member : groups.members[later]) --groups.of_task[member.index()];
  }
}

}  // namespace

Groups find_groups(const Plan& plan) {
  Groups groups = find_candidates(plan);
  while (!groups.members.empty()) {
    const std::vector<std::size_t> circle = Order(plan, groups).find_circle();
    if (circle.empty()) break;
    drop(groups, last_on(circle, groups));
  }
  return groups;
}

Groups no_groups(const Plan& plan) {
  return {.members = {}, .of_task = std::vector<int>(plan.tasks.size(), -1)};
}

}  // namespace harpe::sync
