#include "verify/launch_bounds.h"

#include <algorithm>
#include <string>
#include <vector>

namespace harpe::verifier {
namespace {

using launch::Launch;
using launch::LaunchPlan;

bool has_waits(const Launch& launch) {
  return !launch.awaits.empty() || !launch.begun.empty() || launch.all_ready || launch.all_pulled;
}

bool has_raises(const Launch& launch) {
  return !launch.ready.empty() || !launch.pulled.empty() || !launch.raises.empty();
}

class BoundsCheck {
 public:
  BoundsCheck(const Plan& plan, const LaunchPlan& launches)
      : plan_(plan), launches_(launches), is_written_(plan.allocs.size()) {
    for (const Task& task : plan.tasks) {
      for (const Ref& ref : task.writes) is_written_[ref.alloc.index()] = true;
    }
  }

  Checked<Ok> run() {
    for (id_ = 0; id_ < launches_.launches.size(); ++id_) {
      const Launch& launch = launches_.launches[id_];
      if (!launch.bounds_epoch) continue;
      HP_REQUIRE_OK(check_launch(launch));
      for (const Launch& other : launches_.launches) {
        if (other.rank == launch.rank && &other != &launch) HP_REQUIRE_OK(check_other(other));
      }
      HP_REQUIRE_OK(check_reads(launch));
    }
    return Ok{};
  }

 private:
  [[nodiscard]] Diag refuse(const std::string& problem) const {
    return make_diag(
        DiagCode::V740,
        {{"launch", id_}, {"rank", launches_.launches[id_].rank.value}, {"problem", problem}});
  }

  [[nodiscard]] bool is_boundary(const Launch& launch, TaskKind kind) const {
    return plan_.tasks[launch.does.front().index()].kind == kind;
  }

  [[nodiscard]] Checked<Ok> check_launch(const Launch& launch) const {
    if (launch.kernels.size() != 1 || launch.kernels.front().name != "gemm_sm90") {
      return refuse("it has not one kernel, which can do so");
    }
    if (has_waits(launch) || has_raises(launch)) {
      return refuse("it waits or raises signals outside of its kernel");
    }
    return Ok{};
  }

  // Posted signals, and those in data, have no words here that a kernel could poll and raise.
  [[nodiscard]] bool is_flag(launch::SignalId id) const {
    const launch::Signal& signal = launches_.signals[id.index()];
    return !signal.is_posted && !signal.is_in_data;
  }

  [[nodiscard]] Checked<Ok> check_other(const Launch& other) const {
    const bool is_entry = is_boundary(other, TaskKind::Entry);
    const bool is_exit = is_boundary(other, TaskKind::Exit);
    if (is_entry && has_raises(other)) return refuse("the Entry of its rank raises signals");
    if (is_exit && has_waits(other)) return refuse("the Exit of its rank awaits signals");
    if (!std::ranges::all_of(other.awaits, [&](launch::SignalId id) { return is_flag(id); }) ||
        !std::ranges::all_of(other.raises,
                             [&](const launch::Raise& raise) { return is_flag(raise.signal); })) {
      return refuse("the Entry or the Exit of its rank has signals that are no words of a page");
    }
    if (is_entry || is_exit) return Ok{};
    if (other.kernels.empty() && !has_waits(other) && !has_raises(other)) return Ok{};
    return refuse("its rank launches other kernels, or waits or raises signals in other launches");
  }

  [[nodiscard]] bool is_input(const launch::Place& place, RankId rank) const {
    const std::size_t at = place.alloc.index();
    return at < plan_.allocs.size() && plan_.allocs[at].rank == rank && !is_written_[at];
  }

  // Of an arrival that is awaited the rows of A come by its signal, those of B do not.
  [[nodiscard]] Checked<Ok> check_reads(const Launch& launch) const {
    for (const launch::Arrival& arrival : launch.kernels.front().arrivals) {
      for (std::size_t i = 0; i < arrival.reads.size(); ++i) {
        const launch::Place& place = arrival.reads[i];
        if (is_input(place, launch.rank) || (arrival.when && i == 0)) continue;
        const std::string name = place.alloc.index() < plan_.allocs.size()
                                     ? plan_.allocs[place.alloc.index()].name
                                     : std::to_string(place.alloc.value);
        return refuse("it reads `" + name + "`, which is no input of its rank, without a signal");
      }
    }
    return Ok{};
  }

  const Plan& plan_;
  const LaunchPlan& launches_;
  std::vector<bool> is_written_;  // by allocation
  std::size_t id_ = 0;            // of the launch at hand
};

}  // namespace

Checked<Ok> check_bounds(const Plan& plan, const LaunchPlan& launches) {
  return BoundsCheck(plan, launches).run();
}

}  // namespace harpe::verifier
