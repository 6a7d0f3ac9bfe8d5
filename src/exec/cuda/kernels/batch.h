#pragma once

#include <vector>

#include "exec/cuda/kernels/launch_spec.h"

namespace harpe::cuda {

// The same work in fewer launches, of which so many multiprocessors may work at once. Neighbours
// that differ in nothing but where their operands are, and of which none writes what another reads
// or writes, become one: moves and functions with a table of places, products as groups
// (gemm.h). So what a task does to the rows of every expert is one launch.
[[nodiscard]] std::vector<LaunchSpec> batched(std::vector<LaunchSpec> launches,
                                              int multiprocessors);

// Whether any are neighbours that `batched` may join.
[[nodiscard]] bool can_be_batched(const std::vector<LaunchSpec>& launches);

// Whether how many rows it has is known only as it runs.
[[nodiscard]] bool is_ragged(const LaunchSpec& launch);

}  // namespace harpe::cuda
