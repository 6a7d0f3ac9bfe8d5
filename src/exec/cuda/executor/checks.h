#pragma once

#include <cstdint>
#include <vector>

#include "exec/cuda/executor/cuda_executor.h"
#include "exec/cuda/runtime/device.h"
#include "plan/plan.h"

namespace harpe::cuda {

// A rank in each process. Errors: N016. Requires: options.launch.
[[nodiscard]] Checked<Ok> check_launch(const CudaOptions& options, const Plan& plan);

// The GPU of each rank of this process, or with `divide_gpus` its part of it. Errors: G005, G070.
[[nodiscard]] Checked<std::vector<GpuPart>> gpus_of(const DriverApi& driver, std::int64_t ranks,
                                                    const CudaOptions& options);

}  // namespace harpe::cuda
