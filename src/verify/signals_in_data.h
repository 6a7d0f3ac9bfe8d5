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

// Signals without a memory cell (launch::Signal::is_in_data). The reader polls an element, takes
// its value and stores "absent" in its place, so each element has one store and one read per
// execution.

// Each signal is a flag that one fused store raises and that addends of one kernel await. If plans
// take turns, other plans do not use this memory (launch::inboxes_of). Requires: check_launches.
// Errors: V730.
[[nodiscard]] Checked<Ok> check_signals_in_data(const launch::LaunchPlan& launches);

// The cells that such signals guard.
class CellsInData {
 public:
  // Checks that the panels of a signal's fused store write exactly what its addends read, each cell
  // once, and that no other step accesses these cells. Requires: check_signals_in_data,
  // check_raises. Errors: V730.
  [[nodiscard]] static Checked<CellsInData> make(const launch::LaunchPlan& launches,
                                                 const Steps& steps, const Resolved& resolved,
                                                 const Words& words);

  [[nodiscard]] bool empty() const { return cells_.empty(); }

  // Whether the cell's own signal orders `writer` before `reader`: the two are its store and its
  // read in one execution. `cell`: Resolved::cell_index.
  [[nodiscard]] bool orders(std::size_t cell, std::int32_t writer, std::int32_t reader) const;

 private:
  friend class CellCheck;
  struct Cell {
    std::int32_t signal = -1;
    std::int32_t writer = -1;  // the step that stores it, in the first execution
    std::int32_t reader = -1;  // the step that reads it
  };
  std::vector<Cell> cells_;  // by Resolved::cell_index; empty without signals in data
  std::size_t tasks_ = 0;    // steps of one execution
};

// The steps without the order that only signals in data give. Units keep the numbers of the full
// order.
[[nodiscard]] Plan drop_signals_in_data(const Steps& steps);

}  // namespace harpe::verifier
