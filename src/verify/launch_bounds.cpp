#include "verify/launch_bounds.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "plan/launch_signals.h"

namespace harpe::verifier {
namespace {

using launch::Launch;
using launch::LaunchPlan;

// Kernels that have a variant that bounds an epoch.
constexpr std::array<std::string_view, 2> kCan = {"gemm_sm90", "fa_fwd_sm90"};

// Whether the launch has waits other than for signals.
bool has_other_waits(const Launch& launch) {
  return !launch.begun.empty() || launch.all_ready || launch.all_pulled;
}

bool has_waits(const Launch& launch) { return !launch.awaits.empty() || has_other_waits(launch); }

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
    std::map<RankId, std::size_t> bounding;  // the last one of each rank
    for (id_ = 0; id_ < launches_.launches.size(); ++id_) {
      const Launch& launch = launches_.launches[id_];
      if (!launch.bounds_epoch) continue;
      HP_REQUIRE_OK(check_launch(launch));
      HP_REQUIRE_OK(check_reads(launch));
      bounding[launch.rank] = id_;
    }
    if (bounding.empty()) return Ok{};
    for (std::size_t i = 0; i < launches_.launches.size(); ++i) {
      const auto found = bounding.find(launches_.launches[i].rank);
      if (found == bounding.end() || found->second == i) continue;
      id_ = found->second;
      HP_REQUIRE_OK(check_other(launches_.launches[i], i));
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
    if (launch.kernels.size() != 1 ||
        std::ranges::find(kCan, launch.kernels.front().name) == kCan.end()) {
      return refuse("it has not one kernel, which can do so");
    }
    if (has_other_waits(launch) || has_raises(launch)) {
      return refuse("it waits or raises signals outside of its kernel");
    }
    return check_flags(launch);
  }

  // A kernel cannot poll or raise posted signals or signals in data, because they have no cell
  // here.
  [[nodiscard]] bool is_flag(launch::SignalId id) const {
    const launch::Signal& signal = launches_.signals[id.index()];
    return !signal.is_posted && !signal.is_in_data;
  }

  [[nodiscard]] Checked<Ok> check_flags(const Launch& launch) const {
    const bool are_flags =
        std::ranges::all_of(launch.awaits, [&](launch::SignalId id) { return is_flag(id); }) &&
        std::ranges::all_of(launch.raises,
                            [&](const launch::Raise& raise) { return is_flag(raise.signal); });
    if (are_flags) return Ok{};
    return refuse("it, or its rank's Entry or Exit, has signals that are not flags of a page");
  }

  [[nodiscard]] Checked<Ok> check_other(const Launch& other, std::size_t at) const {
    const Launch& bounding = launches_.launches[id_];
    const bool is_exit = is_boundary(other, TaskKind::Exit);
    if (is_exit && has_other_waits(other)) {
      return refuse("the Exit of its rank waits for more than signals");
    }
    if (is_exit || is_boundary(other, TaskKind::Entry)) return check_flags(other);
    if (other.kernels.empty() && !has_waits(other) && !has_raises(other)) return Ok{};
    if (!ends_alone(bounding.rank)) {
      return refuse("other launches of its rank come before an Exit that awaits or raises signals");
    }
    const bool counts = has_other_waits(other) || has_raises(other) ||
                        std::ranges::any_of(other.kernels, launch::names_signals);
    if (at > id_ && other.queue == bounding.queue && !counts) return Ok{};
    return refuse(
        "another launch of its rank does not follow it in its queue, raises signals or "
        "waits inside");
  }

  // Whether the rank's Exit only ends the epoch, which then may end before the launches that follow
  // the kernel: these do not use it.
  [[nodiscard]] bool ends_alone(RankId rank) const {
    return std::ranges::none_of(launches_.launches, [&](const Launch& launch) {
      return launch.rank == rank && is_boundary(launch, TaskKind::Exit) &&
             (has_waits(launch) || has_raises(launch));
    });
  }

  [[nodiscard]] bool is_input(const launch::Place& place, RankId rank) const {
    const std::size_t at = place.alloc.index();
    return at < plan_.allocs.size() && plan_.allocs[at].rank == rank && !is_written_[at];
  }

  // In an awaited arrival, the signal guards the rows of A but not those of B.
  [[nodiscard]] Checked<Ok> check_reads(const Launch& launch) const {
    const launch::Kernel& kernel = launch.kernels.front();
    for (const launch::Arrival& arrival : kernel.arrivals) {
      for (std::size_t i = 0; i < arrival.reads.size(); ++i) {
        if (!arrival.when || i > 0) HP_REQUIRE_OK(check_read(arrival.reads[i], launch.rank));
      }
    }
    for (const launch::Panel& panel : kernel.panels) {
      if (!panel.maps.empty()) return refuse("it applies maps, whose operands it may read early");
      for (const launch::Place& place : panel.reads) {
        HP_REQUIRE_OK(check_read(place, launch.rank));
      }
    }
    return Ok{};
  }

  [[nodiscard]] Checked<Ok> check_read(const launch::Place& place, RankId rank) const {
    if (is_input(place, rank)) return Ok{};
    const std::string name = place.alloc.index() < plan_.allocs.size()
                                 ? plan_.allocs[place.alloc.index()].name
                                 : std::to_string(place.alloc.value);
    return refuse("it reads `" + name + "`, which is no input of its rank, without a signal");
  }

  const Plan& plan_;
  const LaunchPlan& launches_;
  std::vector<bool> is_written_;  // by allocation
  std::size_t id_ = 0;            // of the current launch
};

}  // namespace

Checked<Ok> check_bounds(const Plan& plan, const LaunchPlan& launches) {
  return BoundsCheck(plan, launches).run();
}

}  // namespace harpe::verifier
