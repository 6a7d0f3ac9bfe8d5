#pragma once

#include <optional>

#include "exec/cuda/runtime/driver_api.h"
#include "exec/cuda/runtime/tensor_map_spec.h"
#include "exec/group/local_homes.h"

namespace harpe::cuda {

// A caller's tensor and its dense image, as one copy of the driver: slices of rows of bytes, which
// are contiguous in the image.
struct HomeCopy {
  std::size_t row_bytes = 0;
  std::size_t rows = 1;
  std::size_t slices = 1;
  std::size_t row_pitch = 0;   // of the tensor, in bytes
  std::size_t slice_rows = 0;  // distance of the tensor's slices, in rows

  // None if one such copy cannot express the tensor's strides.
  [[nodiscard]] static std::optional<HomeCopy> of(const TensorView& tensor);
};

enum class CopyDirection : std::uint8_t { ToImage, ToTensor };

[[nodiscard]] Result<Ok, CudaError> order_copy(const DriverApi& driver, const HomeCopy& copy,
                                               DeviceAddress tensor, DeviceAddress image,
                                               CopyDirection direction, CUstream stream);

}  // namespace harpe::cuda
