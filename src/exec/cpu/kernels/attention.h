#pragma once

#include "exec/actions/problems.h"

namespace harpe {

// o is normalised; lse is the natural logarithm of the row's sum. A query that sees no key gets o =
// 0 and lse = -inf, or, under carry, keeps its state. Hidden values never reach a query, NaN
// included. Requires: q, k, v of equal dtype among f16, bf16, f32, f64; o and lse overlap none of
// them. Keeps: as multiply.
void attend(const AttentionProblem& problem);

}  // namespace harpe
