#pragma once

#include <cstdint>

#include "compile/simulation.h"
#include "run/backend.h"

namespace harpe {

struct TaxRunRequest {
  BackendRequest backend;
  std::int64_t iterations = 20;  // executions; their median is the total
  std::uint64_t seed = 0;        // of the inputs
};

// Makes rows of measured taxes: the plan is executed, then once more with a timeline, whose
// critical path is divided (measure/timeline_taxes.h). The roofline is the machine's prediction. A
// run with a fault is a row too. Errors of the result: plan_for's, certify's, make_executor's.
[[nodiscard]] TaxMaker taxes_on_gpus(Session& session, const TaxRunRequest& request);

}  // namespace harpe
