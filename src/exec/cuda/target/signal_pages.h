#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/launch_plan.h"

namespace harpe::cuda {

// A launch plan's signals in the pages of the waiting ranks; each page holds its rank's signals in
// the order of the launch plan.
class SignalPages {
 public:
  // Requires: the launch plan's signals outlive this.
  SignalPages(const launch::LaunchPlan& launches, std::int64_t ranks)
      : signals_(launches.signals), first_(static_cast<std::size_t>(ranks) + 1) {
    for (const launch::Signal& signal : signals_) ++first_[signal.rank.index() + 1];
    for (std::size_t rank = 1; rank < first_.size(); ++rank) first_[rank] += first_[rank - 1];
  }

  [[nodiscard]] const launch::Signal& operator[](launch::SignalId id) const {
    return signals_[id.index()];
  }
  [[nodiscard]] std::span<const launch::Signal> page(RankId rank) const {
    return signals_.subspan(first_[rank.index()], count(rank.index()));
  }
  // Index in its rank's page.
  [[nodiscard]] std::int32_t index_of(launch::SignalId id) const {
    return static_cast<std::int32_t>(id.index() - first_[(*this)[id].rank.index()]);
  }
  // Number of signals on the fullest page.
  [[nodiscard]] std::int32_t most() const {
    std::size_t most = 0;
    for (std::size_t rank = 0; rank + 1 < first_.size(); ++rank) most = std::max(most, count(rank));
    return static_cast<std::int32_t>(most);
  }

 private:
  [[nodiscard]] std::size_t count(std::size_t rank) const {
    return first_[rank + 1] - first_[rank];
  }

  std::span<const launch::Signal> signals_;
  std::vector<std::size_t> first_;  // by rank, and behind the last
};

}  // namespace harpe::cuda
