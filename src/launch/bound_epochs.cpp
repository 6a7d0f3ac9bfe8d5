#include <algorithm>
#include <vector>

#include "launch/passes.h"
#include "plan/launch_signals.h"

namespace harpe::launch {
namespace {

// The launches of one rank.
class Rank {
 public:
  explicit Rank(Draft& draft) : draft_(draft) {}

  void note(Launch& launch) {
    if (launch.begins_epoch) {
      entry_ = &launch;
    } else if (draft_.task(launch.does.front()).kind == TaskKind::Exit) {
      exit_ = &launch;
    } else if (is_only_kernel(launch) && kernel_ == nullptr) {
      kernel_ = &launch;
    } else if (does_something(launch)) {
      ++others_;
      if (kernel_ != nullptr && is_follower(launch)) ++followers_;
    }
  }

  void bound() {
    if (kernel_ == nullptr || !draft_.offers.bounds_epochs(kernel_->kernels.front())) return;
    const auto counts = [&](TaskId id) {
      return draft_.task(id).kind == TaskKind::Compute && draft_.offers.counts_rows(id);
    };
    const TaskId task = kernel_->does.front();
    if (std::ranges::any_of(kernel_->does, counts)) return draft_.refuse(task, Reason::CountsRows);
    // A kernel without signals does not get the address of its rank's page.
    if (!names_signals(kernel_->kernels.front())) return draft_.refuse(task, Reason::NoSignals);
    if (draft_.target.shares_sms) return draft_.refuse(task, Reason::SharedSms);
    if (followers_ < others_) {
      return draft_.refuse(task, Reason::OtherLaunches, others_ - followers_);
    }
    // Signals of Entries will replace credits (make_launches.cpp).
    const bool ends_alone = exit_->awaits.empty() && are_credits(draft_.out.signals, exit_->raises);
    if (others_ > 0 && !ends_alone) return draft_.refuse(task, Reason::ExitBehind, others_);
    if (!has_plain_bounds()) {
      return draft_.refuse(
          task, Reason::OtherBounds,
          std::ssize(entry_->awaits) + std::ssize(kernel_->awaits) + std::ssize(exit_->awaits),
          std::ssize(entry_->raises) + std::ssize(exit_->raises));
    }
    if (!may_read_early()) return draft_.refuse(task, Reason::ReadsEarly);
    kernel_->bounds_epoch = true;
    draft_.applied(task);
  }

 private:
  static bool is_collective(const Launch& launch) {
    return !launch.ready.empty() || launch.all_ready || !launch.pulled.empty() || launch.all_pulled;
  }
  static bool does_something(const Launch& launch) {
    return !launch.kernels.empty() || !launch.awaits.empty() || !launch.begun.empty() ||
           !launch.raises.empty() || is_collective(launch);
  }
  // Before its kernel such a launch awaits only entries of other ranks.
  static bool is_only_kernel(const Launch& launch) {
    return launch.kernels.size() == 1 && launch.begun.empty() && launch.raises.empty() &&
           !is_collective(launch) && !launch.lands;
  }

  // Follows the rank's first kernel in the same queue, with kernels that do not need the epoch.
  [[nodiscard]] bool is_follower(const Launch& launch) const {
    return launch.queue == kernel_->queue && launch.begun.empty() && launch.raises.empty() &&
           !is_collective(launch) && !launch.lands &&
           std::ranges::none_of(launch.kernels, names_signals);
  }

  // At most `most_bounds` flags of ranks on this node.
  [[nodiscard]] bool has_plain_bounds() const {
    const std::size_t most = draft_.target.most_bounds;
    const auto is_flag = [&](SignalId id) {
      const Signal& signal = draft_.out.signals[id.index()];
      return !signal.is_posted && !signal.is_in_data;
    };
    const auto are_plain = [&](const Launch& boundary) {
      return boundary.awaits.size() <= most && boundary.raises.size() <= most &&
             std::ranges::all_of(boundary.awaits, is_flag) &&
             std::ranges::all_of(boundary.raises, is_flag, &Raise::signal);
    };
    return entry_->awaits.size() + kernel_->awaits.size() <= most && are_plain(*entry_) &&
           std::ranges::all_of(kernel_->awaits, is_flag) && are_plain(*exit_);
  }

  // True if no task writes what the kernel may read before the Entry's waits are over.
  [[nodiscard]] bool may_read_early() const {
    const auto is_input = [&](const Place& place) {
      return place.alloc.index() < draft_.plan.allocs.size() &&
             draft_.plan.allocs[place.alloc.index()].rank == kernel_->rank &&
             draft_.writers[place.alloc.index()].empty();
    };
    // If an arrival is awaited, its signal covers the rows of A, but not those of B.
    const Kernel& kernel = kernel_->kernels.front();
    return std::ranges::all_of(
               kernel.arrivals,
               [&](const Arrival& arrival) {
                 return is_input(arrival.reads.back()) &&
                        (arrival.when || std::ranges::all_of(arrival.reads, is_input));
               }) &&
           std::ranges::all_of(kernel.panels, [&](const Panel& panel) {
             return panel.maps.empty() && std::ranges::all_of(panel.reads, is_input);
           });
  }

  Draft& draft_;
  Launch* entry_ = nullptr;
  Launch* exit_ = nullptr;
  Launch* kernel_ = nullptr;
  int others_ = 0;     // other launches that do something
  int followers_ = 0;  // those of them that follow the kernel
};

}  // namespace

void bound_epochs(Draft& draft) {
  std::vector<Rank> ranks(static_cast<std::size_t>(draft.plan.mesh.ranks()), Rank(draft));
  for (Step& step : draft.steps) {
    if (!step.is_joined) ranks[step.launch.rank.index()].note(step.launch);
  }
  for (Rank& rank : ranks) rank.bound();
}

}  // namespace harpe::launch
