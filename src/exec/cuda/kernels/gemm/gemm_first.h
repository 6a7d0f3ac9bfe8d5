#pragma once

#include "exec/cuda/kernels/gemm/device/gemm_args.h"
#include "exec/cuda/kernels/gemm/device/gemm_config.h"

namespace harpe::cuda {

// Sets `args.first` for a grid of `grid` thread blocks: what each loads of the first unit of its
// walk (gemm_walk.cuh). A block has none if it copies first, if its operands await a flag, if
// tables are in memory, or if there is no unit for it; with groups and few rows none has. Requires:
// all other arguments are set.
void place_first(const device::GemmConfig& config, int grid, device::GemmArgs& args);

}  // namespace harpe::cuda
