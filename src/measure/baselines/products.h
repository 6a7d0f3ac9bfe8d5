#pragma once

#include <vector>

#include "measure/baselines/baseline.h"

namespace harpe::library {

struct ProductAddresses {
  cuda::DeviceAddress a = 0;
  cuda::DeviceAddress b = 0;
  cuda::DeviceAddress c = 0;
};

// A way for each algorithm that cuBLASLt names. Errors: G081 it is not there, or names none.
[[nodiscard]] Checked<std::vector<Step>> product_ways(const Result<CublasLt, Missing>& library,
                                                      const ProductShape& shape,
                                                      const ProductAddresses& at);

}  // namespace harpe::library
