#include "sim/task_launches.h"

#include <algorithm>

#include "plan/launch_signals.h"
#include "plan/refs.h"
#include "sim/variants.h"

namespace harpe {
namespace {

constexpr std::string_view kCopyEngine = "copy_engine";
constexpr std::string_view kNccl = "nccl";

// How the kernels with panels of a launch do one of its tasks.
DoneBy done_by_panels(const launch::Launch& launch, const Task& task) {
  switch (task.kind) {
    case TaskKind::Compute:
      return DoneBy::Kernel;
    case TaskKind::Copy: {
      const auto copies = [&](const launch::Kernel& kernel) {
        return std::ranges::any_of(kernel.fused_copies, [&](const launch::FusedCopy& copy) {
          return copy.to.alloc == task.writes.front().alloc;
        });
      };
      return std::ranges::any_of(launch.kernels, copies) ? DoneBy::FusedCopy : DoneBy::FusedStore;
    }
    case TaskKind::Finalise: {
      const auto adds = [](const launch::Kernel& kernel) {
        return std::ranges::any_of(
            kernel.panels, [](const launch::Panel& panel) { return !panel.addends.empty(); });
      };
      return std::ranges::any_of(launch.kernels, adds) ? DoneBy::Total : DoneBy::Rounding;
    }
    default:
      return DoneBy::Itself;
  }
}

bool is_engine(const launch::Kernel& kernel) { return kernel.name == kCopyEngine; }

}  // namespace

TaskLaunches::TaskLaunches(const Plan& plan, const launch::LaunchPlan& launches)
    : plan_(plan), launches_(launches), by_(plan.tasks.size(), DoneBy::Itself) {
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    order_.emplace_back(static_cast<std::int64_t>(i));
  }
  if (launches.launches.empty()) return;
  at_.resize(plan.tasks.size());
  leads_.resize(launches.launches.size());
  inside_.resize(launches.launches.size());
  behind_engine_.resize(launches.launches.size());
  std::vector<char> by_engine(plan.queues.size());  // the last launch of each queue so far
  for (std::size_t i = 0; i < launches.launches.size(); ++i) {
    const launch::Launch& launch = launches.launches[i];
    if (launch.lands) continue;
    note(launch, i);
    send_first(launch, i);
    char& last = by_engine[launch.queue.index()];
    behind_engine_[i] = last;
    last = std::ranges::any_of(launch.kernels, is_engine) ? 1 : 0;
  }
}

void TaskLaunches::note(const launch::Launch& launch, std::size_t at) {
  inside_[at] = std::ranges::any_of(launch.kernels, launch::waits_inside) ? 1 : 0;
  if (launch.bounds_epoch) bounded_.insert(launch.rank);
  const bool has_panels = std::ranges::any_of(
      launch.kernels, [](const launch::Kernel& kernel) { return !kernel.panels.empty(); });
  for (const TaskId id : launch.does) {
    at_[id.index()] = at;
    DoneBy& by = by_[id.index()];
    if (launch.is_skipped) {
      by = DoneBy::Nothing;
    } else if (has_panels) {
      by = done_by_panels(launch, plan_.tasks[id.index()]);
    } else if (launch.does.size() > 1 && plan_.tasks[id.index()].kind == TaskKind::Compute) {
      by = DoneBy::Kernel;
    }
  }
}

std::string_view TaskLaunches::variant(TaskId task) const {
  const launch::Launch* const launch = of(task);
  if (launch == nullptr || launch->kernels.empty()) return {};
  return launch->kernels.front().variant;
}

bool TaskLaunches::is_streamed(TaskId task) const {
  return read_streams(variant(task)).has_value();
}

bool TaskLaunches::moves_by_threads(TaskId task) const {
  return harpe::moves_by_threads(variant(task));
}

bool TaskLaunches::is_in_data(TaskId store) const {
  return std::ranges::any_of(launches_.signals, [&](const launch::Signal& signal) {
    return signal.is_in_data && std::ranges::find(signal.from, store) != signal.from.end();
  });
}

void TaskLaunches::send_first(const launch::Launch& launch, std::size_t at) {
  if (launch.does.empty()) return;
  leads_[at] = launch.does.front();
  std::vector<TaskId> stores;
  std::vector<TaskId> sums;
  for (const TaskId id : launch.does) {
    if (by(id) == DoneBy::FusedStore) stores.push_back(id);
    if (by(id) == DoneBy::Kernel) sums.push_back(id);
  }
  std::vector<TaskId> sorted;
  std::vector<TaskId> kept;
  std::size_t next = 0;  // stores are mostly in the order of their sums
  for (const TaskId sum : sums) {
    std::size_t tried = 0;
    while (tried < stores.size() && !takes(stores[next], sum)) {
      next = (next + 1) % stores.size();
      ++tried;
    }
    (tried < stores.size() ? sorted : kept).push_back(sum);
  }
  sorted.insert(sorted.end(), kept.begin(), kept.end());
  for (std::size_t i = 0; i < sums.size(); ++i) order_[sums[i].index()] = sorted[i];
  if (!sums.empty() && sums.front() == leads_[at]) leads_[at] = sorted.front();
}

std::vector<TaskId> TaskLaunches::makers(TaskId store) const {
  std::vector<TaskId> found;
  for (const TaskId id : of(store)->does) {
    const bool is_total = by(id) == DoneBy::Total || by(id) == DoneBy::Rounding;
    if ((by(id) != DoneBy::Kernel && !is_total) || !takes(store, id)) continue;
    if (is_total) {
      const std::vector<TaskId> of_total = makers(id);
      found.insert(found.end(), of_total.begin(), of_total.end());
    } else {
      found.push_back(id);
    }
  }
  return found;
}

std::vector<TaskId> TaskLaunches::totals(TaskId store) const {
  std::vector<TaskId> found;
  for (const TaskId id : of(store)->does) {
    if (by(id) == DoneBy::Total && takes(store, id)) found.push_back(id);
  }
  return found;
}

std::int64_t TaskLaunches::receivers(TaskId store) const {
  const std::vector<TaskId> stored = totals(store);
  if (stored.empty()) return 0;
  return std::ranges::count_if(of(store)->does, [&](TaskId id) {
    return by(id) == DoneBy::FusedStore && totals(id) == stored;
  });
}

// True if the copy reads something that `maker` writes.
bool TaskLaunches::takes(TaskId copy, TaskId maker) const {
  const auto is_made = [&](const Ref& read) {
    return std::ranges::any_of(plan_.tasks[maker.index()].writes,
                               [&](const Ref& write) { return meet(read, write); });
  };
  return std::ranges::any_of(plan_.tasks[copy.index()].reads, is_made);
}

std::int64_t TaskLaunches::kernels(TaskId task) const {
  return at_.empty() ? 1 : std::ssize(launches_.launches[at(task)].kernels);
}

bool TaskLaunches::is_by_engine(TaskId task) const {
  return std::ranges::all_of(of(task)->kernels, is_engine);
}

bool TaskLaunches::follows_others(TaskId task) const {
  const launch::Launch* const launch = of(task);
  if (launch == nullptr) return false;
  const bool waits = !launch->awaits.empty() || inside_[at(task)] != 0;
  return (!launch->bounds_epoch && waits) ||
         std::ranges::any_of(launch->after, [&](launch::LaunchId before) {
           return !launches_.launches[before.index()].begins_epoch;
         });
}

bool TaskLaunches::awaits_engine(TaskId task) const {
  const launch::Launch* const launch = of(task);
  if (launch == nullptr) return false;
  return std::ranges::any_of(launch->awaits, [&](launch::SignalId signal) {
    return std::ranges::any_of(launches_.signals[signal.index()].from,
                               [&](TaskId from) { return of(from)->raised_by_engine; });
  });
}

bool TaskLaunches::agrees_to_end(TaskId exit) const {
  const launch::Launch* const launch = of(exit);
  return launch != nullptr && bounds_epoch(launch->rank) &&
         (!launch->awaits.empty() || !launch->raises.empty());
}

bool TaskLaunches::is_by_nccl(TaskId task) const {
  return !at_.empty() && std::ranges::any_of(of(task)->kernels, [](const launch::Kernel& kernel) {
    return kernel.name == kNccl;
  });
}

std::int64_t TaskLaunches::copy_blocks(TaskId task) const {
  if (by(task) != DoneBy::FusedCopy) return 0;
  std::int64_t blocks = 0;
  for (const launch::Kernel& kernel : of(task)->kernels) blocks += kernel.copy_blocks;
  return blocks;
}

// A copy within the rank of its own homes, which a kernel may read in place.
bool TaskLaunches::is_local_copy(const Task& task) const {
  if (task.kind != TaskKind::Copy) return false;
  const RankId rank = plan_.queues[task.queue.index()].rank;
  const auto is_own = [&](const Ref& ref) { return plan_.allocs[ref.alloc.index()].rank == rank; };
  return std::ranges::all_of(task.writes, is_own) &&
         std::ranges::all_of(task.reads, [&](const Ref& ref) {
           return is_own(ref) && plan_.allocs[ref.alloc.index()].level == Level::Home;
         });
}

bool TaskLaunches::waits(TaskId task, TaskId before) const {
  if (at_.empty()) return true;
  if (by(before) == DoneBy::Nothing) return false;
  const Task& from = plan_.tasks[before.index()];
  if (by(task) != DoneBy::Kernel || !is_local_copy(from)) return true;
  const auto is_written = [&](const launch::Place& place) {
    return std::ranges::any_of(from.writes,
                               [&](const Ref& ref) { return ref.alloc == place.alloc; });
  };
  const auto reads = [&](const launch::Kernel& kernel) {
    return kernel.panels.empty() ||
           std::ranges::any_of(kernel.arrivals,
                               [&](const launch::Arrival& arrival) {
                                 return std::ranges::any_of(arrival.reads, is_written);
                               }) ||
           std::ranges::any_of(kernel.panels, [&](const launch::Panel& panel) {
             return std::ranges::any_of(panel.reads, is_written);
           });
  };
  return std::ranges::any_of(of(task)->kernels, reads);
}

bool TaskLaunches::waits_inside(TaskId task) const {
  if (at_.empty()) return true;
  const DoneBy how = by(task);
  return how == DoneBy::Itself || how == DoneBy::FusedCopy ||
         (inside_[at(task)] != 0 && how != DoneBy::FusedStore);
}

}  // namespace harpe
