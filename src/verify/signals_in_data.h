#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/launch_plan.h"
#include "plan/plan.h"
#include "support/diag.h"
#include "verify/order.h"
#include "verify/resolved.h"
#include "verify/steps.h"
#include "verify/words.h"

namespace harpe::verifier {

// Signals that have no word (launch::Signal::is_in_data). The reader takes an element once it is
// there and leaves "absent" behind, so each element has one store and one read an execution.

// Each is a flag that one fused store raises, and that addends of one kernel wait for. Where plans
// take turns the memory is kept apart (launch::inboxes_of). Requires: check_launches. Errors: V730.
[[nodiscard]] Checked<Ok> check_signals_in_data(const launch::LaunchPlan& launches);

// The cells that such signals are of.
class CellsInData {
 public:
  // The panels of a signal's fused store store what its addends read, each cell once, and no other
  // step touches it. Requires: check_signals_in_data, check_raises. Errors: V730.
  [[nodiscard]] static Checked<CellsInData> make(const launch::LaunchPlan& launches,
                                                 const Steps& steps, const Resolved& resolved,
                                                 const Words& words);

  [[nodiscard]] bool empty() const { return cells_.empty(); }

  // Whether the cell itself orders what its store writes before what its addend reads: both steps
  // are of one execution. `cell`: Resolved::cell_index.
  [[nodiscard]] bool orders(std::size_t cell, std::int32_t writer, std::int32_t reader) const;

 private:
  friend class CellCheck;
  struct Cell {
    std::int32_t signal = -1;
    std::int32_t writer = -1;  // the step that stores it, in the first execution
    std::int32_t reader = -1;  // the step that reads it
  };
  std::vector<Cell> cells_;  // by Resolved::cell_index; none without signals in data
  std::size_t tasks_ = 0;    // steps of one execution
};

// The steps without what only signals in data order. Its units are numbered as in the order of all.
[[nodiscard]] Plan drop_signals_in_data(const Steps& steps);

}  // namespace harpe::verifier
