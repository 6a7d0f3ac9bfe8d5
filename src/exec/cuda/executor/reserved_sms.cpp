#include "exec/cuda/executor/reserved_sms.h"

#include <algorithm>

#include "exec/cuda/executor/nodes.h"
#include "exec/describe.h"

namespace harpe::cuda {

ReservedSms::ReservedSms(const Plan& plan, const Wiring& wiring, const Groups& groups,
                         const std::vector<TaskSpecs>& specs, RankId rank, bool is_alone)
    : plan_(plan),
      wiring_(wiring),
      groups_(groups),
      specs_(specs),
      rank_(rank),
      is_alone_(is_alone) {
  for (const TaskId task : wiring.sequence[rank.index()]) places_.emplace(task, places_.size());
}

// A copy within a GPU is a kernel's work.
bool ReservedSms::is_by_engine(TaskId task) const {
  const std::vector<LaunchSpec>& launches = specs_[task.index()].launches;
  const auto own = [&](const Ref& ref) { return plan_.allocs[ref.alloc.index()].rank == rank_; };
  const Task& what = plan_.tasks[task.index()];
  const bool is_local =
      std::ranges::all_of(what.reads, own) && std::ranges::all_of(what.writes, own);
  const bool copies = std::ranges::all_of(launches, [](const LaunchSpec& launch) {
    return std::holds_alternative<CopyLaunch>(launch);
  });
  return launches.empty() || (copies && !is_local);
}

bool ReservedSms::is_raised_by_engine(TaskId task) const {
  const TaskWiring& wiring = wiring_of(task);
  return is_alone_ && !specs_[task.index()].launches.empty() && is_by_engine(task) &&
         wiring.arrivals.empty() && !wiring.raises.empty() &&
         std::ranges::all_of(wiring.raises, [&](const Raise& raise) {
           return raise.added == 0 && raise.rank != rank_ && !raise.is_posted;
         });
}

// Once what it and the tasks before it in its queue wait for is there.
bool ReservedSms::needs_no_kernel(TaskId producer, const std::set<TaskId>& silent) const {
  const QueueId queue = plan_.tasks[producer.index()].queue;
  for (const TaskId task : wiring_.sequence[rank_.index()]) {
    if (plan_.tasks[task.index()].queue != queue || silent.contains(task)) continue;
    if (!is_raised_by_engine(task) || !waits_for_entries(plan_, wiring_, task)) return false;
    if (task == producer) return true;
  }
  return false;
}

// By kernels that wait for it too.
bool ReservedSms::lands_here(TaskId task) const {
  return goes_out(plan_, task) && destination_of(plan_, plan_.tasks[task.index()]) == rank_;
}

ReservedSms::Need ReservedSms::beside(const std::vector<TaskId>& members,
                                      const std::vector<TaskId>& waiting,
                                      const std::set<TaskId>& silent) const {
  Need need;
  std::set<TaskId> producers;
  for (const std::vector<TaskId>& group : groups_.members) {
    for (const TaskId task : group == members ? waiting : group) {
      const std::vector<PageSignal>& page = wiring_.pages[rank_of(plan_, task).index()];
      for (const std::int32_t signal : wiring_of(task).waits) {
        for (const TaskId from : page[static_cast<std::size_t>(signal)].producers) {
          if (rank_of(plan_, from) == rank_ && !silent.contains(from)) producers.insert(from);
          if (lands_here(from)) need.multiprocessors = kForKernels;
        }
      }
    }
  }
  for (const TaskId producer : producers) {
    if (places_.at(producer) > places_.at(members.front()) || !needs_no_kernel(producer, silent)) {
      need.multiprocessors =
          std::max(need.multiprocessors, is_by_engine(producer) ? kForSignals : kForKernels);
    } else if (!wiring_of(producer).waits.empty()) {
      need.behind.push_back(producer);
    }
  }
  return need;
}

}  // namespace harpe::cuda
