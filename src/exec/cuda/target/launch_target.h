#pragma once

#include "exec/described_target.h"
#include "launch/target.h"

namespace harpe::cuda {

// H200s as a target of launch plans. Neither a GPU nor its libraries are needed; NCCL is taken to
// be there.
class LaunchTarget : public launch::Target {
 public:
  explicit LaunchTarget(const DescribedTarget& target);

  [[nodiscard]] const Facts& facts() const override { return facts_; }
  // Errors: G074, G090, G091, X010, X015.
  [[nodiscard]] Checked<Ok> check(const Plan& plan) const override;
  [[nodiscard]] std::unique_ptr<launch::Offers> open(
      const Plan& plan, const Blocks& blocks, const launch::Exchanges& exchanges,
      const std::vector<AllocId>& partials16) const override;

 private:
  Facts facts_;
};

}  // namespace harpe::cuda
