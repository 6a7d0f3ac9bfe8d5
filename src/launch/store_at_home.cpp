#include <algorithm>
#include <utility>

#include "launch/passes.h"

namespace harpe::launch {
namespace {

class HomeStorer {
 public:
  explicit HomeStorer(Draft& draft) : draft_(draft) {}

  void store(std::size_t at) {
    Step& step = draft_.steps[at];
    const std::optional<TaskId> next = draft_.next(step.launch.does.back());
    if (draft_.task(step.launch.does.back()).kind != TaskKind::Compute || !next) return;
    if (!is_rounding(*next) || !is_sole_user(at, *next)) return;
    std::vector<Kernel> kernels = step.launch.kernels;
    if (!move_home(*next, kernels)) return;
    Launch proposed = proposal(step.launch);
    proposed.does.push_back(*next);
    for (const Kernel& kernel : kernels) {
      if (draft_.offers.choose(proposed, kernel)) continue;
      return draft_.refuse(*next, Reason::NoKernel, static_cast<std::int64_t>(kernel.panels.size()),
                           static_cast<std::int64_t>(kernel.arrivals.size()));
    }
    step.launch.kernels = std::move(kernels);
    draft_.join(at, draft_.step_at[next->index()]);
    draft_.applied(*next);
  }

 private:
  [[nodiscard]] bool is_rounding(TaskId finalise) {
    const Task& task = draft_.task(finalise);
    if (task.kind != TaskKind::Finalise) return false;
    if (task.reads.size() != task.writes.size()) {
      draft_.refuse(finalise, Reason::SeveralSources, finalise.value,
                    static_cast<std::int64_t>(task.reads.size() / task.writes.size()));
      return false;
    }
    const sync::TaskWiring& wiring = draft_.wiring_of(finalise);
    const auto waits = static_cast<std::int64_t>(wiring.waits.size() + wiring.after.size());
    if (waits > 0) draft_.refuse(finalise, Reason::OtherWaits, finalise.value, waits);
    return waits == 0;
  }

  // True if only the launch, tasks before it in its queue, and the total read or write the state.
  [[nodiscard]] bool is_sole_user(std::size_t at, TaskId finalise) {
    const TaskId first = draft_.steps[at].launch.does.front();
    const QueueId queue = draft_.task(finalise).queue;
    for (const Ref& ref : draft_.task(finalise).reads) {
      for (const auto* const users : {&draft_.readers, &draft_.writers}) {
        for (const TaskId user : (*users)[ref.alloc.index()]) {
          const bool is_before = draft_.task(user).queue == queue && user < first;
          if (user == finalise || is_before || draft_.step_at[user.index()] == at) continue;
          draft_.refuse(finalise, Reason::StateShared, finalise.value, user.value);
          return false;
        }
      }
    }
    return true;
  }

  // Makes the kernels store all that the total rounds at its home; false where they cannot.
  [[nodiscard]] bool move_home(TaskId finalise, std::vector<Kernel>& kernels) {
    const Task& task = draft_.task(finalise);
    std::vector<LaidRef> states;
    std::int64_t left = 0;  // elements that no kernel stores yet
    for (const Ref& ref : task.reads) {
      states.push_back(draft_.layouts.of(ref));
      left += states.back().elements();
    }
    for (Kernel& kernel : kernels) {
      if (kernel.panels.empty()) return refused(finalise, Reason::NoPanels);
      for (Panel& panel : kernel.panels) {
        if (panel.adds || panel.dtype != DType::F32) return refused(finalise, Reason::AddsUp);
        for (Place& place : panel.stores) {
          const std::optional<AllocId> home = home_of(task, states, place);
          if (!home) return refused(finalise, Reason::NotWhole);
          left -= count_elements(place.span);
          place.alloc = *home;
        }
        if (!has_types(kernel, panel)) return refused(finalise, Reason::OtherType);
        panel.dtype = draft_.dtype_of(panel.stores.front().alloc);
      }
    }
    return left == 0 || refused(finalise, Reason::NotWhole);
  }

  [[nodiscard]] static std::optional<AllocId> home_of(const Task& task,
                                                      const std::vector<LaidRef>& states,
                                                      const Place& place) {
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (states[i].alloc == place.alloc && states[i].find(place.span) != nullptr) {
        return task.writes[i].alloc;
      }
    }
    return std::nullopt;
  }

  // The result has the operands' type or f32; further parts of a state have f32.
  [[nodiscard]] bool has_types(const Kernel& kernel, const Panel& panel) const {
    if (panel.stores.empty()) return false;
    const DType home = draft_.dtype_of(panel.stores.front().alloc);
    return (home == draft_.operand_type(kernel, panel) || home == DType::F32) &&
           std::all_of(panel.stores.begin() + 1, panel.stores.end(), [&](const Place& place) {
             return draft_.dtype_of(place.alloc) == DType::F32;
           });
  }

  bool refused(TaskId finalise, Reason reason) {
    draft_.refuse(finalise, reason, finalise.value);
    return false;
  }

  Draft& draft_;
};

}  // namespace

void store_at_home(Draft& draft) {
  HomeStorer storer(draft);
  for (std::size_t at = 0; at < draft.steps.size(); ++at) {
    if (!draft.steps[at].is_joined && !draft.steps[at].launch.lands) storer.store(at);
  }
}

}  // namespace harpe::launch
