#pragma once

#include <vector>

#include "sim/simulate.h"

namespace harpe {

// The three taxes by successive idealisation (docs/taxes.md): each is how much the time falls when
// its cause is removed, in this order. total = roofline + launch + synchronization + locality +
// residual, exactly.
struct Taxes {
  Picoseconds total;
  Picoseconds launch;           // kernels, copies and signals start the moment they can
  Picoseconds synchronization;  // barriers and whole-transfer waits become waits per tile
  Picoseconds locality;         // intermediates do not pass through memory
  Picoseconds residual;         // tails, imbalance, contention: no single change removes it
  Picoseconds roofline;         // the busiest resource at the leaf's and the link's own rate
  Resource bound;               // that resource
  // dT/d(delay) of a delay on one rank, the largest over the ranks tried: 1 is fully passed on.
  double skew_sensitivity = 0;
};
// Requires: as simulate. Errors: check_time's.
[[nodiscard]] Checked<Taxes> tax(const Plan& plan, const launch::LaunchPlan& launches,
                                 const Machine& machine, Launch launch);

}  // namespace harpe
