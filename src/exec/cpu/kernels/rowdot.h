#pragma once

#include "exec/actions/problems.h"

namespace harpe {

// Summed in f32, or f64 for f64 operands. Requires: floating types.
void multiply_rows(const RowDotProblem& problem);

}  // namespace harpe
