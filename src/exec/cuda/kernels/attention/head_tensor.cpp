#include "exec/cuda/kernels/attention/head_tensor.h"

#include <array>

namespace harpe::cuda {
namespace {

constexpr int kBoxBytes = 128;  // bytes of a box row, as the swizzle requires

}  // namespace

Checked<Ok> check_aligned(std::string_view name, const HeadTensor& tensor,
                          device::Element element) {
  const device::AttentionStrides& strides = tensor.strides;
  return check_aligned(name, tensor.address, std::array{strides.batch, strides.row, strides.head},
                       element);
}

TensorMapSpec map_of_heads(const HeadTensor& tensor, const HeadSizes& sizes,
                           device::Element element, int box_rows) {
  // A dimension of size 1 may have any stride, but TMA requires one that is not 0.
  const auto stride_of = [&](std::int64_t stride, std::int64_t count) {
    return count == 1 ? sizes.columns : stride;
  };
  return {.address = tensor.address,
          .element = element,
          .dimensions = 4,
          .sizes = {sizes.columns, sizes.heads, sizes.rows, sizes.batch},
          .strides = {1, stride_of(tensor.strides.head, sizes.heads),
                      stride_of(tensor.strides.row, sizes.rows),
                      stride_of(tensor.strides.batch, sizes.batch)},
          .box = {kBoxBytes / device::bytes_of(element), 1, box_rows, 1}};
}

}  // namespace harpe::cuda
