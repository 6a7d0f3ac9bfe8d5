#pragma once

#include "exec/cuda/runtime/driver_api.h"
#include "exec/cuda/runtime/tensor_map_spec.h"

namespace harpe::cuda {

// Errors: G041 an address or stride that the bulk copy engine does not support; G005.
[[nodiscard]] Checked<device::TensorMap> encode_map(const DriverApi& driver,
                                                    const TensorMapSpec& spec);

}  // namespace harpe::cuda
