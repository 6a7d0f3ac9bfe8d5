#pragma once

#include <memory>
#include <vector>

#include "exec/cuda/target/bind_kernel.h"
#include "exec/cuda/target/launch_target.h"
#include "exec/cuda/target/made_up_memory.h"
#include "exec/cuda/target/signal_pages.h"

namespace harpe::cuda {

// A launch plan bound to made-up addresses, as the executor binds it to a GPU's. Needs neither a
// GPU nor its libraries.
class MadeUpBinding {
 public:
  // Requires: the launch plan was made for the plan and the target; plan, blocks and launch plan
  // outlive the result. Errors: those of preparing tasks.
  [[nodiscard]] static Checked<std::unique_ptr<MadeUpBinding>> make(
      const Plan& plan, const Blocks& blocks, const launch::LaunchPlan& launches,
      const DescribedTarget& target);
  MadeUpBinding(const MadeUpBinding&) = delete;
  MadeUpBinding& operator=(const MadeUpBinding&) = delete;

  // Errors: those of bind, check_variant and check.
  [[nodiscard]] Checked<LaunchSpecs> bind(const launch::Launch& launch);

  // The made-up address of a signal.
  [[nodiscard]] static std::uint32_t* cell_of(launch::SignalId signal);

 private:
  MadeUpBinding(const Plan& plan, const Blocks& blocks, const launch::LaunchPlan& launches,
                const DescribedTarget& target);
  [[nodiscard]] Checked<Ok> prepare_alone();
  [[nodiscard]] SignalCells cells() const;

  DescribedTarget target_;
  const launch::LaunchPlan& launches_;
  launch::Exchanges exchanges_;
  Plan plan_;  // with the boxes of exchanges
  CollectiveChoice collectives_;
  MadeUpMemory memory_;
  NarrowStates narrow_;
  SpecSource source_;
  SignalPages pages_;
  std::vector<TaskAlone> alone_;  // by task
};

// Checks that every launch of the launch plan binds. Errors: as above.
[[nodiscard]] Checked<Ok> check_binding(const Plan& plan, const Blocks& blocks,
                                        const launch::LaunchPlan& launches,
                                        const DescribedTarget& target);

}  // namespace harpe::cuda
