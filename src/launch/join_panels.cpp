#include "launch/join.h"
#include "launch/passes.h"

namespace harpe::launch {
namespace {

// Joins the kernels of a group's members into one.
class GroupJoiner {
 public:
  GroupJoiner(Draft& draft, const std::vector<TaskId>& members)
      : draft_(draft), members_(members) {}

  void join() {
    const TaskId first = members_.front();
    if (!collect()) return;
    Result<Kernel, Refused> joined = join_kernels(draft_, kernels_);
    if (!joined) {
      return draft_.refuse(first, joined.error().reason, joined.error().a, joined.error().b);
    }
    const auto arrivals = static_cast<std::int64_t>(joined->arrivals.size());
    if (joined->arrivals.size() != members_.size()) {
      return draft_.refuse(first, Reason::SharedArrivals,
                           static_cast<std::int64_t>(members_.size()), arrivals);
    }
    Launch proposed = proposal(draft_.step_of(first).launch);
    proposed.does = members_;
    if (!draft_.offers.choose(proposed, *joined)) {
      return draft_.refuse(first, Reason::NoKernel,
                           static_cast<std::int64_t>(joined->panels.size()), arrivals);
    }
    accept(*std::move(joined));
  }

 private:
  [[nodiscard]] bool collect() {
    const TaskId first = members_.front();
    for (const TaskId member : members_) {
      const sync::TaskWiring& wiring = draft_.wiring_of(member);
      const Step& step = draft_.step_of(member);
      const auto waits = static_cast<std::int64_t>(wiring.waits.size());
      if (step.launch.kernels.empty()) {
        draft_.refuse(first, Reason::NoPanels, member.value);
        return false;
      }
      if (waits > 1) {
        draft_.refuse(first, Reason::SeveralWaits, member.value, waits);
        return false;
      }
      if (member != first && !wiring.after.empty()) {
        draft_.refuse(first, Reason::BehindOtherQueue, member.value,
                      static_cast<std::int64_t>(wiring.after.size()));
        return false;
      }
      AwaitedKernel one{.task = member};
      if (waits > 0) one.when = step.launch.awaits.front();
      for (const Kernel& kernel : step.launch.kernels) {
        one.kernel = &kernel;
        kernels_.push_back(one);
      }
    }
    return true;
  }

  void accept(Kernel joined) {
    const std::size_t at = draft_.step_at[members_.front().index()];
    Step& step = draft_.steps[at];
    for (std::size_t i = 1; i < members_.size(); ++i) {
      draft_.join(at, draft_.step_at[members_[i].index()]);
    }
    step.launch.kernels = {std::move(joined)};
    step.launch.awaits.clear();
    step.waits_inside = true;
    step.waiting = members_;
    draft_.applied(members_.front());
  }

  Draft& draft_;
  const std::vector<TaskId>& members_;
  std::vector<AwaitedKernel> kernels_;
};

}  // namespace

void join_panels(Draft& draft) {
  for (const std::vector<TaskId>& members : draft.groups.members) {
    GroupJoiner(draft, members).join();
  }
}

}  // namespace harpe::launch
