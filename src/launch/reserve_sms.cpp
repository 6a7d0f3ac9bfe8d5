#include <algorithm>
#include <set>
#include <utility>

#include "launch/passes.h"
#include "plan/refs.h"
#include "sync/nodes.h"

namespace harpe::launch {
namespace {

// What else a rank's GPU must run while a kernel on it waits inside for signals. A kernel that
// fills the GPU lets no other kernel start, not even one that raises a signal or waits for one
// (docs/gpu.md).
class Reserver {
 public:
  explicit Reserver(Draft& draft) : draft_(draft) {
    queues_.resize(draft.plan.queues.size());
    for (std::size_t i = 0; i < draft.plan.tasks.size(); ++i) {
      queues_[draft.plan.tasks[i].queue.index()].emplace_back(static_cast<std::int64_t>(i));
    }
    needs_.resize(static_cast<std::size_t>(draft.plan.mesh.ranks()));
    for (std::size_t group = 0; group < draft.groups.members.size(); ++group) note_needs(group);
  }

  void reserve(std::size_t at) {
    Step& step = draft_.steps[at];
    Launch& launch = step.launch;
    const std::set<TaskId> waiting(step.waiting.begin(), step.waiting.end());
    const int group = draft_.groups.of(launch.does.front());
    std::set<TaskId> producers;
    for (const Need& need : needs_[launch.rank.index()]) {
      if (need.group == group && !waiting.contains(need.waiter)) continue;
      if (need.lands) launch.reserved_sms = draft_.target.sms_for_kernels;
      const bool is_here = rank_of(draft_.plan, need.producer) == launch.rank;
      if (is_here && !draft_.is_silent(need.producer, at)) producers.insert(need.producer);
    }
    for (const TaskId producer : producers) add(at, producer);
    if (launch.reserved_sms > 0 || !launch.begun.empty()) draft_.applied(launch.does.front());
  }

  // True if only the copy engine moves the task's data, and it can raise all of the task's signals.
  [[nodiscard]] bool is_raised_by_engine(TaskId id) const {
    const sync::TaskWiring& wiring = draft_.wiring_of(id);
    const RankId rank = rank_of(draft_.plan, id);
    return !draft_.target.shares_sms && draft_.has_kernels[id.index()] &&
           draft_.is_by_engine[id.index()] && wiring.arrivals.empty() && !wiring.raises.empty() &&
           std::ranges::all_of(wiring.raises, [&](const sync::PageRaise& raise) {
             return raise.added == 0 && raise.rank != rank && !raise.is_posted;
           });
  }

 private:
  // A task of a group waits for a signal that the producer raises, or for a put that lands here.
  struct Need {
    TaskId producer;
    TaskId waiter;
    int group = -1;
    bool lands = false;
  };

  void note_needs(std::size_t group) {
    for (const TaskId waiter : draft_.groups.members[group]) {
      const auto& page = draft_.wiring.pages[rank_of(draft_.plan, waiter).index()];
      for (const std::int32_t signal : draft_.wiring_of(waiter).waits) {
        for (const TaskId producer : page[static_cast<std::size_t>(signal)].producers) {
          Need need{.producer = producer, .waiter = waiter, .group = static_cast<int>(group)};
          needs_[rank_of(draft_.plan, producer).index()].push_back(need);
          if (!sync::goes_out(draft_.plan, producer)) continue;
          need.lands = true;
          needs_[destination_of(draft_.plan, draft_.task(producer)).index()].push_back(need);
        }
      }
    }
  }

  void add(std::size_t at, TaskId producer) {
    Launch& launch = draft_.steps[at].launch;
    const std::size_t place = draft_.position[producer.index()];
    if (place > draft_.position[launch.does.front().index()] || !needs_no_kernel(at, producer)) {
      const Target::Facts& target = draft_.target;
      const std::int32_t needed =
          draft_.is_by_engine[producer.index()] ? target.sms_for_signals : target.sms_for_kernels;
      launch.reserved_sms = std::max(launch.reserved_sms, needed);
    } else if (!draft_.wiring_of(producer).waits.empty()) {
      launch.begun.emplace_back(static_cast<std::int64_t>(place));
    }
  }

  // True if neither the producer nor a task before it in its queue needs a kernel: the copy engine
  // does them and raises their signals, and they wait for entries alone.
  [[nodiscard]] bool needs_no_kernel(std::size_t at, TaskId producer) const {
    for (const TaskId id : queues_[draft_.task(producer).queue.index()]) {
      if (draft_.is_silent(id, at)) continue;
      if (!is_raised_by_engine(id) || !sync::waits_for_entries(draft_.plan, draft_.wiring, id)) {
        return false;
      }
      if (id == producer) return true;
    }
    return false;
  }

  Draft& draft_;
  std::vector<std::vector<TaskId>> queues_;
  std::vector<std::vector<Need>> needs_;  // by rank of the producer, or of the landing
};

}  // namespace

void reserve_sms(Draft& draft) {
  Reserver reserver(draft);
  for (std::size_t at = 0; at < draft.steps.size(); ++at) {
    Step& step = draft.steps[at];
    if (step.is_joined || step.launch.lands) continue;
    if (step.waits_inside) reserver.reserve(at);
    step.launch.raised_by_engine =
        !step.launch.is_skipped && reserver.is_raised_by_engine(step.launch.does.front());
  }
}

}  // namespace harpe::launch
