#pragma once

#include "exec/actions/problems.h"

namespace harpe {

// Sums squares in the order of the GPU's kernel: runs of 8 neighbours in order, run after run in
// 256 chains, and the chains in a tree. Requires: floating types.
void add_rms_norm(const AddRmsNormProblem& problem);

}  // namespace harpe
