#pragma once

#include <cstdint>
#include <map>
#include <span>

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
  // Has the plan's allocations lie there. `distances`: by rank, from its arena to where its inboxes
  // begin, which have so many bytes.
  void move_apart(Plan& plan, std::span<const std::int64_t> distances) const;

 private:
  std::map<AllocId, std::int64_t> offsets_;
  std::int64_t bytes_ = 0;
};

}  // namespace harpe::cuda
