#pragma once

#include <vector>

#include "measure/baselines/baseline.h"

namespace harpe::library {

struct GemmAddresses {
  cuda::DeviceAddress a = 0;
  cuda::DeviceAddress b = 0;
  cuda::DeviceAddress c = 0;
};

// One way for each algorithm that cuBLASLt lists. Errors: G081 it is missing, or lists none.
[[nodiscard]] Checked<std::vector<Step>> gemm_ways(const Result<CublasLt, Missing>& library,
                                                   const LibraryGemmShape& shape,
                                                   const GemmAddresses& at);

}  // namespace harpe::library
