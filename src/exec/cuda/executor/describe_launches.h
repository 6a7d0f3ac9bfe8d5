#pragma once

#include "exec/collective_use.h"
#include "plan/launch_plan.h"
#include "support/diag.h"

namespace harpe::cuda {

// A machine to describe launches for. NCCL is taken to be there.
struct DescribedTarget {
  int multiprocessors = 132;  // of an H200
  bool shares_gpus = false;   // ranks do
  CollectiveEngine collectives = CollectiveEngine::Auto;
};

// What GPUs launch for a plan: the decisions that the executor makes, taken at made-up addresses
// and read back as tasks, allocations and elements. Neither a GPU nor its libraries are needed.
// Requires: a verified plan. Errors: those of make_cuda_executor that the plan alone causes (G072,
// G074, G075, G083, G090, G091, X001 to X015).
[[nodiscard]] Checked<launch::LaunchPlan> describe_launches(const Plan& plan,
                                                            const DescribedTarget& target);

}  // namespace harpe::cuda
