#pragma once

#include <cstdint>
#include <string_view>

#include "exec/cuda/kernels/attention/device/attention_args.h"
#include "exec/cuda/runtime/tensor_map_spec.h"

namespace harpe::cuda {

// A tensor [batch, row, head, column] whose columns are contiguous; strides in elements.
struct HeadTensor {
  DeviceAddress address = 0;  // of the first row in use
  device::AttentionStrides strides{};
};

// The extents of a HeadTensor.
struct HeadSizes {
  std::int64_t batch = 1;
  std::int64_t rows = 0;
  std::int64_t heads = 0;
  std::int64_t columns = 0;
};

// Errors: G041, as check_aligned.
[[nodiscard]] Checked<Ok> check_aligned(std::string_view name, const HeadTensor& tensor,
                                        device::Element element);

// Dimensions columns, heads, rows, batch; boxes of 128 bytes by `box_rows`.
[[nodiscard]] TensorMapSpec map_of_heads(const HeadTensor& tensor, const HeadSizes& sizes,
                                         device::Element element, int box_rows);

}  // namespace harpe::cuda
