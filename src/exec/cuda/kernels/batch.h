#pragma once

#include "exec/cuda/kernels/plan_launches.h"

namespace harpe::cuda {

// The same work in fewer launches, of which so many multiprocessors may work at once. Neighbours
// that differ in nothing but where their operands are, and of which none writes what another reads
// or writes, become one: moves and functions with a table of places, products as groups
// (gemm.h). So what a task does to the rows of every expert is one launch.
[[nodiscard]] LaunchSpecs batched(LaunchSpecs launches, int multiprocessors);

// Whether any are neighbours that `batched` may join.
[[nodiscard]] bool can_be_batched(const LaunchSpecs& launches);

}  // namespace harpe::cuda
