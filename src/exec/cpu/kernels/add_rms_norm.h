#pragma once

#include "exec/actions/problems.h"

namespace harpe {

// Squares are added up as the GPU's kernel does it: runs of 8 neighbours in order, run after run in
// 256 chains, and the chains in a tree. Requires: floating types.
void add_rms_norm(const AddRmsNormProblem& problem);

}  // namespace harpe
