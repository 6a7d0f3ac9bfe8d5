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

// The inboxes (launch::inboxes_of) of a plan that shares the arenas with other plans. They lie
// behind the signals of its own pages, so that no other plan writes there between executions.
class Inboxes {
 public:
  Inboxes(const Plan& plan, const launch::LaunchPlan& launches);

  // In each rank's page.
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  // The addresses of all inboxes. `begins`: by rank, the address of its bytes() bytes of inboxes.
  [[nodiscard]] std::map<std::pair<RankId, std::string>, std::byte*> places(
      const Plan& plan, std::span<std::byte* const> begins) const;

 private:
  std::map<AllocId, std::int64_t> offsets_;
  std::int64_t bytes_ = 0;
};

}  // namespace harpe::cuda
