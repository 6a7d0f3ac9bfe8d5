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

// Checks that ids lie within the plan and the launch plan, that exactly one launch of its rank does
// each task, and that each kernel fits its name. Errors: V701, V702, V704, V706.
[[nodiscard]] Checked<Ok> check_launches(const Plan& plan, const launch::LaunchPlan& launches,
                                         const Words& words);

// Checks that an execution raises each signal exactly as often as its wait takes. Errors: V703.
[[nodiscard]] Checked<Ok> check_raises(const launch::LaunchPlan& launches, const Steps& steps);

// Checks that a counter gets no increment of an execution before all increments of the previous
// one.
class CounterCheck {
 public:
  // Requires: check_raises. The arguments must outlive this object.
  CounterCheck(const launch::LaunchPlan& launches, const Steps& steps, const Order& order,
               const Words& words);
  // `over`: what is over when the step starts. Errors: V707.
  [[nodiscard]] Checked<Ok> check(std::int32_t step, const Row& over) const;

 private:
  const launch::LaunchPlan& launches_;
  const Steps& steps_;
  const Order& order_;
  const Words& words_;
  // Per step of one execution: the counters that it increments, among those that several launches
  // increment.
  std::vector<std::vector<std::size_t>> raised_by_;
};

}  // namespace harpe::verifier
