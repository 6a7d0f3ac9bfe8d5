#pragma once

#include "exec/cuda/kernels/plan_launches.h"

namespace harpe::cuda {

// The same work in fewer launches, for `multiprocessors` SMs. It joins neighbours that differ only
// in the addresses of their operands, if none writes what another reads or writes: moves and maps
// with a table of places, GEMMs as one grouped GEMM (gemm.h). So a task's work on the rows of all
// experts is one launch.
[[nodiscard]] LaunchSpecs batched(LaunchSpecs launches, int multiprocessors);

// Whether any two neighbours are alike, so that `batched` may join them.
[[nodiscard]] bool can_be_batched(const LaunchSpecs& launches);

}  // namespace harpe::cuda
