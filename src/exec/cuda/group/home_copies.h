#pragma once

#include <optional>

#include "exec/cuda/runtime/driver_api.h"
#include "exec/cuda/runtime/tensor_map_spec.h"
#include "exec/group/local_homes.h"

namespace harpe::cuda {

// A tensor of a caller's and its dense image, as what one copy of the driver's takes: slices of
// rows of bytes. In the image they lie one behind the other.
struct HomeCopy {
  std::size_t row_bytes = 0;
  std::size_t rows = 1;
  std::size_t slices = 1;
  std::size_t row_pitch = 0;   // bytes from row to row of the tensor
  std::size_t slice_rows = 0;  // rows from slice to slice of it, were they all there

  // None where the tensor's strides are not those of such a copy.
  [[nodiscard]] static std::optional<HomeCopy> of(const TensorView& tensor);
};

enum class CopyDirection : std::uint8_t { ToImage, ToTensor };

[[nodiscard]] Result<Ok, CudaError> order_copy(const DriverApi& driver, const HomeCopy& copy,
                                               DeviceAddress tensor, DeviceAddress image,
                                               CopyDirection direction, CUstream stream);

}  // namespace harpe::cuda
