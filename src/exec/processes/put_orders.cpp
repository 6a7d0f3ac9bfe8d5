#include "exec/processes/put_orders.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "exec/describe.h"

namespace harpe::processes {
namespace {

using transport::Follows;

// A put and its place in the queue.
struct Placed {
  TaskId put;
  RankId to;
  Fence fence = Fence::PerPut;
  bool waits = false;  // for tasks outside its queue, by itself or by a task before it in the queue
};
using PutQueue = std::vector<Placed>;

// Tasks that wait for anything but Entries.
std::set<TaskId> waiting_tasks(const Plan& plan) {
  std::set<TaskId> waiting;
  for (const Sync& sync : plan.syncs) {
    if (plan.tasks[sync.from.index()].kind != TaskKind::Entry) waiting.insert(sync.to);
  }
  for (const Barrier& barrier : plan.barriers) waiting.insert(barrier.to.begin(), barrier.to.end());
  return waiting;
}

std::vector<PutQueue> queues_of(const Plan& plan, const std::vector<TaskId>& puts,
                                const std::map<TaskId, Fence>& fences) {
  const std::set<TaskId> waiting = waiting_tasks(plan);
  const std::set<TaskId> all_puts(puts.begin(), puts.end());
  std::map<QueueId, PutQueue> queues;
  std::map<QueueId, bool> waits;  // since the previous put
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    const TaskId id(static_cast<std::int64_t>(i));
    const Task& task = plan.tasks[i];
    bool& has_waited = waits[task.queue];
    has_waited = has_waited || waiting.contains(id);
    if (!all_puts.contains(id)) continue;
    queues[task.queue].push_back(
        {.put = id, .to = destination_of(plan, task), .waits = std::exchange(has_waited, false)});
  }
  std::vector<PutQueue> all;
  for (auto& [id, queue] : queues) {
    std::optional<Fence> next;
    for (std::size_t at = queue.size(); at-- > 0;) {
      if (const auto own = fences.find(queue[at].put); own != fences.end()) next = own->second;
      queue[at].fence = next.value_or(Fence::PerPut);
    }
    all.push_back(std::move(queue));
  }
  return all;
}

bool shares_signals(Fence fence) {
  return fence == Fence::PerDestination || fence == Fence::Batched || fence == Fence::OneQuiet;
}

bool joins(const Placed& put, const Placed& before) {
  if (put.waits || put.fence != before.fence || !shares_signals(put.fence)) return false;
  return put.fence == Fence::OneQuiet || put.to == before.to;
}

Follows follows_of(std::span<const Placed> batch, std::size_t at) {
  const auto rest = batch.subspan(at + 1);
  if (rest.empty()) return Follows::Nothing;
  const bool is_to_same =
      std::ranges::any_of(rest, [&](const Placed& put) { return put.to == batch[at].to; });
  return is_to_same ? Follows::Group : Follows::Epoch;
}

}  // namespace

std::map<TaskId, Fence> find_fences(const Plan& plan) {
  std::map<TaskId, Fence> fences;
  for (const Sync& sync : plan.syncs) {
    const Task& from = plan.tasks[sync.from.index()];
    if (!sync.fence || from.writes.empty()) continue;
    if (rank_of(plan, sync.to) != destination_of(plan, from)) continue;
    const auto [known, is_new] = fences.emplace(sync.from, *sync.fence);
    if (!is_new) known->second = std::min(known->second, *sync.fence);
  }
  return fences;
}

std::map<TaskId, PutOrder> order_puts(const Plan& plan, const std::vector<TaskId>& puts) {
  std::map<TaskId, PutOrder> orders;
  for (const PutQueue& queue : queues_of(plan, puts, find_fences(plan))) {
    for (std::size_t first = 0; first < queue.size();) {
      std::size_t end = first + 1;
      while (end < queue.size() && joins(queue[end], queue[end - 1])) ++end;
      const auto batch = std::span(queue).subspan(first, end - first);
      for (std::size_t at = 0; at < batch.size(); ++at) {
        orders[batch[at].put] = {.fence = batch[at].fence, .follows = follows_of(batch, at)};
      }
      first = end;
    }
  }
  return orders;
}

}  // namespace harpe::processes
