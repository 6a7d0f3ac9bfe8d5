#pragma once

#include "exec/actions/problems.h"

namespace harpe {

// Requires: floating types.
void apply_pointwise(const PointwiseProblem& problem);

}  // namespace harpe
