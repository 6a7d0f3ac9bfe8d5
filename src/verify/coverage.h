#pragma once

#include <cstdint>

#include "plan/plan.h"
#include "support/diag.h"
#include "verify/execution.h"
#include "verify/meaning.h"
#include "verify/model.h"
#include "verify/resolved.h"
#include "verify/terms.h"

namespace harpe::verifier {

// Compares every non-empty block of every output, at every home and replica, with the sequential
// program. If homes keep partial states, the ranks that share a block hold its value together.
// Returns the number of blocks compared. Errors: V520-V524.
[[nodiscard]] Checked<std::int64_t> check_outputs(const Plan& plan, const Model& model,
                                                  const Resolved& resolved, const Meaning& meaning,
                                                  Execution& execution, Terms& terms);

// Whether some block of an output has several homes.
[[nodiscard]] bool has_replicas(const Model& model);

// Compares the terms of Bits that the homes of one block hold. If homes keep partial states, it
// compares the homes of one part. Requires: check_outputs. Errors: V525.
[[nodiscard]] Checked<Ok> check_replicas(const Plan& plan, const Model& model,
                                         const Resolved& resolved, Execution& bits);

}  // namespace harpe::verifier
