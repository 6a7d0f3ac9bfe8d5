#include <algorithm>
#include <utility>

#include "launch/join.h"
#include "launch/passes.h"
#include "plan/refs.h"

namespace harpe::launch {
namespace {

class ReplicaStorer {
 public:
  explicit ReplicaStorer(Draft& draft) : draft_(draft) {}

  void store(std::size_t at) {
    Step& step = draft_.steps[at];
    if (step.launch.kernels.size() != 1 || step.launch.kernels.front().panels.empty()) return;
    std::vector<TaskId> copies;
    for (auto next = draft_.next(step.launch.does.back()); next && can_store_for(draft_, *next);
         next = draft_.next(*next)) {
      copies.push_back(*next);
    }
    if (copies.empty()) return;
    Kernel kernel = step.launch.kernels.front();
    const std::vector<Panel> made = kernel.panels;
    Launch proposed = proposal(step.launch);
    for (const TaskId copy : copies) {
      if (!repeat(made, copy, kernel)) return;
      proposed.does.push_back(copy);
    }
    if (!draft_.offers.choose(proposed, kernel)) {
      return draft_.refuse(copies.front(), Reason::NoKernel,
                           static_cast<std::int64_t>(kernel.panels.size()),
                           static_cast<std::int64_t>(kernel.arrivals.size()));
    }
    step.launch.kernels.front() = std::move(kernel);
    take_over(draft_, at, copies);
  }

 private:
  // For each panel of `made` whose result the copy moves, adds a panel that stores it for the copy.
  [[nodiscard]] bool repeat(const std::vector<Panel>& made, TaskId copy, Kernel& kernel) {
    const Task& task = draft_.task(copy);
    std::optional<std::int32_t> fused_store;
    for (const sync::PageRaise& raise : draft_.wiring_of(copy).raises) {
      fused_store = static_cast<std::int32_t>(kernel.fused_stores.size());
      kernel.fused_stores.push_back(draft_.raise_of(raise));
    }
    for (std::size_t i = 0; i < task.reads.size(); ++i) {
      const LaidRef from = draft_.layouts.of(task.reads[i]);
      const AllocId to = task.writes[i].alloc;
      std::int64_t left = from.elements();
      for (const Panel& panel : made) {
        const Place& stored = panel.stores.front();
        if (stored.alloc != from.alloc || from.find(stored.span) == nullptr) continue;
        if (panel.stores.size() != 1 || panel.adds) return refused(copy, Reason::AddsUp);
        if (draft_.dtype_of(to) != panel.dtype) return refused(copy, Reason::OtherType);
        left -= count_elements(stored.span);
        kernel.panels.push_back({.addends = {{.reads = panel.stores, .when = {}}},
                                 .stores = {{.alloc = to, .span = stored.span}},
                                 .dtype = panel.dtype,
                                 .fused_store = fused_store});
      }
      if (left != 0) return refused(copy, Reason::NotWhole);
    }
    return true;
  }

  bool refused(TaskId copy, Reason reason) {
    draft_.refuse(copy, reason, copy.value);
    return false;
  }

  Draft& draft_;
};

}  // namespace

void store_replicas(Draft& draft) {
  ReplicaStorer storer(draft);
  for (std::size_t at = 0; at < draft.steps.size(); ++at) {
    if (!draft.steps[at].is_joined) storer.store(at);
  }
}

}  // namespace harpe::launch
