#pragma once

#include <memory>
#include <vector>

#include "launch/target.h"

namespace harpe::cpu {

// CPU ranks as a target of launch plans: each task is a launch of its own. So is a put to another
// host, which ends once its data is in place.
class LaunchTarget : public launch::Target {
 public:
  // `takes_turns`: several plans use the ranks' memory in turn.
  explicit LaunchTarget(bool takes_turns = false);

  [[nodiscard]] const Facts& facts() const override { return facts_; }
  // Errors: X019 a kernel that CPU ranks lack.
  [[nodiscard]] Checked<Ok> check(const Plan& plan) const override;
  [[nodiscard]] std::unique_ptr<launch::Offers> open(
      const Plan& plan, const Blocks& blocks, const launch::Exchanges& exchanges,
      const std::vector<AllocId>& partials16) const override;

 private:
  Facts facts_;
};

// The launch plan of CPU ranks for a plan. Requires: a verified plan. Errors: those of
// LaunchTarget::check; F1xx of Blocks::make.
[[nodiscard]] Checked<launch::LaunchPlan> launches_of(const Plan& plan, bool takes_turns);

}  // namespace harpe::cpu
