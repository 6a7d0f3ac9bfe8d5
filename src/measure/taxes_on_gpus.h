#pragma once

#include <cstdint>

#include "compile/simulation.h"
#include "run/backend.h"

namespace harpe {

struct TaxRunRequest {
  BackendRequest backend;
  std::int64_t iterations = 20;  // executions whose median is the total
  std::uint64_t seed = 0;        // of the inputs
};

// Rows of taxes that are measured: the plan is executed, then once more with a timeline, whose
// critical path is divided (measure/timeline_taxes.h). The roofline is the prediction's for the
// machine. A run that ends in a fault is a row. Errors, of what it makes: plan_for's, certify's,
// make_executor's.
[[nodiscard]] TaxMaker taxes_on_gpus(Session& session, const TaxRunRequest& request);

}  // namespace harpe
