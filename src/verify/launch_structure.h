#pragma once

#include <cstdint>
#include <vector>

#include "plan/launch_plan.h"
#include "plan/plan.h"
#include "support/diag.h"
#include "verify/clocks.h"
#include "verify/order.h"
#include "verify/steps.h"
#include "verify/words.h"

namespace harpe::verifier {

// Ids lie within the plan and the launch plan, each task is done by one launch of its rank, and
// kernels are what they are named. Errors: V701, V702, V704, V706.
[[nodiscard]] Checked<Ok> check_launches(const Plan& plan, const launch::LaunchPlan& launches,
                                         const Words& words);

// Each signal is raised as often in an execution as it takes. Errors: V703.
[[nodiscard]] Checked<Ok> check_raises(const launch::LaunchPlan& launches, const Steps& steps);

// Nothing is added to a counter in one execution before all that the execution before adds.
class CounterCheck {
 public:
  // Requires: check_raises; all of it outlives this.
  CounterCheck(const launch::LaunchPlan& launches, const Steps& steps, const Order& order,
               const Words& words);
  // `over`: what is over when the step starts. Errors: V707.
  [[nodiscard]] Checked<Ok> check(std::int32_t step, const Row& over) const;

 private:
  const launch::LaunchPlan& launches_;
  const Steps& steps_;
  const Order& order_;
  const Words& words_;
  // Per step of one execution: the counters that it adds to, of those that several launches do.
  std::vector<std::vector<std::size_t>> raised_by_;
};

}  // namespace harpe::verifier
