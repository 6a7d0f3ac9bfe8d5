#include "sync/wired_order.h"

#include <map>
#include <utility>

#include "plan/refs.h"

namespace harpe::sync {

WiredOrder::WiredOrder(const Plan& plan, const Wiring& wiring)
    : tasks_(plan.tasks.size()), next_(2 * tasks_), previous_(2 * tasks_) {
  std::map<std::pair<RankId, std::int32_t>, std::vector<std::size_t>> raised;  // by which nodes
  const auto note_raises = [&](const TaskWiring& own, std::size_t node) {
    for (const auto* raises : {&own.arrivals, &own.raises_after_pull, &own.raises}) {
      for (const PageRaise& raise : *raises) raised[{raise.rank, raise.signal}].push_back(node);
    }
  };
  std::map<QueueId, std::size_t> last;
  for (std::size_t task = 0; task < tasks_; ++task) {
    note_raises(wiring.tasks[task], task);
    const auto [before, is_first] = last.emplace(plan.tasks[task].queue, task);
    if (!is_first) add(std::exchange(before->second, task), task);
  }
  for (const auto& [put, landing] : wiring.landings) note_raises(landing, landing_of(put));
  for (const std::vector<TaskId>& landed : wiring.landed) {
    for (std::size_t at = 1; at < landed.size(); ++at) {
      const bool is_one_queue =
          plan.tasks[landed[at - 1].index()].queue == plan.tasks[landed[at].index()].queue;
      if (is_one_queue) add(landing_of(landed[at - 1]), landing_of(landed[at]));
    }
  }
  const auto add_waits = [&](const TaskWiring& own, RankId rank, std::size_t node) {
    for (const TaskId from : own.after) {
      add(rank_of(plan, from) == rank ? from.index() : landing_of(from), node);
    }
    for (const std::int32_t signal : own.waits) {
      for (const std::size_t from : raised[{rank, signal}]) add(from, node);
    }
  };
  for (std::size_t task = 0; task < tasks_; ++task) {
    const TaskId id(static_cast<std::int64_t>(task));
    const bool is_entry = plan.tasks[task].kind == TaskKind::Entry;
    // An Entry waits for the previous execution.
    if (!is_entry) add_waits(wiring.tasks[task], rank_of(plan, id), task);
  }
  for (const auto& [put, landing] : wiring.landings) {
    add_waits(landing, destination_of(plan, plan.tasks[put.index()]), landing_of(put));
  }
}

void WiredOrder::add(std::size_t from, std::size_t to) {
  next_[from].push_back(to);
  previous_[to].push_back(from);
}

std::vector<bool> WiredOrder::reached(const Edges& edges, std::size_t from) const {
  std::vector<bool> seen(edges.size(), false);
  std::vector<std::size_t> found = {from};
  for (std::size_t at = 0; at < found.size(); ++at) {
    for (const std::size_t node : edges[found[at]]) {
      if (seen[node]) continue;
      seen[node] = true;
      found.push_back(node);
    }
  }
  seen.resize(tasks_);
  return seen;
}

std::vector<bool> WiredOrder::behind_landing(TaskId put) const {
  return reached(next_, landing_of(put));
}

std::vector<bool> WiredOrder::before(TaskId task) const { return reached(previous_, task.index()); }

}  // namespace harpe::sync
