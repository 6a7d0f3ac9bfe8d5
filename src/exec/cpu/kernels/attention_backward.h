#pragma once

#include "exec/actions/problems.h"

namespace harpe {

// A query that sees no key, or whose lse is -inf, contributes to no gradient. Hidden pairs affect
// nothing in either direction, NaN included. Requires: q, k, v, d_o of equal dtype among f16, bf16,
// f32, f64; results overlap no operand. Keeps: as multiply.
void differentiate_attention(const AttentionBackwardProblem& problem);

}  // namespace harpe
