#pragma once

#include "exec/collective_use.h"
#include "launch/target.h"

namespace harpe::cuda {

// A machine to make launches for. NCCL is taken to be there.
struct DescribedTarget {
  int multiprocessors = 132;  // of an H200
  bool shares_gpus = false;   // ranks do
  CollectiveEngine collectives = CollectiveEngine::Auto;
};

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
