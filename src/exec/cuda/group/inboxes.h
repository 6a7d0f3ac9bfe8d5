#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "plan/launch_plan.h"
#include "plan/plan.h"

namespace harpe::cuda {

// Where a plan that takes turns with the arenas keeps its inboxes (launch::inboxes_of): in the
// pages of its own signals, so that no other plan puts anything there between executions.
class Inboxes {
 public:
  Inboxes(const Plan& plan, const launch::LaunchPlan& launches);

  // In the page of each rank.
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  // Where each lies. `begins`: by rank, where its inboxes do, which have so many bytes.
  [[nodiscard]] std::map<std::pair<RankId, std::string>, std::byte*> places(
      const Plan& plan, std::span<std::byte* const> begins) const;

 private:
  std::map<AllocId, std::int64_t> offsets_;
  std::int64_t bytes_ = 0;
};

}  // namespace harpe::cuda
