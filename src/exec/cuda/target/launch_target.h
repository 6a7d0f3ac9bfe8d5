#pragma once

#include "exec/described_target.h"
#include "launch/target.h"

namespace harpe::cuda {

// H200s as a target of launch plans. Needs neither a GPU nor its libraries; NCCL is assumed to be
// present.
class LaunchTarget : public launch::Target {
 public:
  explicit LaunchTarget(const DescribedTarget& target);

  [[nodiscard]] const Facts& facts() const override { return facts_; }
  // Errors: G074, G090, G091, X010, X015, X019.
  [[nodiscard]] Checked<Ok> check(const Plan& plan) const override;
  [[nodiscard]] std::unique_ptr<launch::Offers> open(
      const Plan& plan, const Blocks& blocks, const launch::Exchanges& exchanges,
      const std::vector<AllocId>& partials16) const override;

 private:
  Facts facts_;
};

}  // namespace harpe::cuda
