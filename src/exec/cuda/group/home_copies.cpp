#include "exec/cuda/group/home_copies.h"

#include <vector>

namespace harpe::cuda {
namespace {

struct Loop {
  std::int64_t extent = 1;
  std::int64_t stride = 0;  // bytes
};

// The tensor's axes, innermost first; contiguous ones are merged.
std::vector<Loop> loops_of(const TensorView& tensor) {
  const std::int64_t element = size_in_bytes(tensor.dtype);
  std::vector<Loop> loops = {{.extent = element, .stride = 1}};
  for (std::size_t axis = tensor.axes; axis-- > 0;) {
    const Loop next{.extent = tensor.shape[axis], .stride = tensor.strides[axis] * element};
    if (next.extent == 1) continue;
    if (next.stride == loops.back().extent * loops.back().stride) {
      loops.back().extent *= next.extent;
    } else {
      loops.push_back(next);
    }
  }
  return loops;
}

}  // namespace

std::optional<HomeCopy> HomeCopy::of(const TensorView& tensor) {
  const std::vector<Loop> loops = loops_of(tensor);
  if (loops.size() > 3) return std::nullopt;
  HomeCopy copy{.row_bytes = static_cast<std::size_t>(loops[0].extent)};
  copy.row_pitch = copy.row_bytes;
  if (loops.size() > 1) {
    if (loops[1].stride < loops[0].extent) return std::nullopt;
    copy.rows = static_cast<std::size_t>(loops[1].extent);
    copy.row_pitch = static_cast<std::size_t>(loops[1].stride);
  }
  copy.slice_rows = copy.rows;
  if (loops.size() > 2) {
    const std::int64_t apart = loops[2].stride / loops[1].stride;
    if (loops[2].stride % loops[1].stride != 0 || apart < loops[1].extent) return std::nullopt;
    copy.slices = static_cast<std::size_t>(loops[2].extent);
    copy.slice_rows = static_cast<std::size_t>(apart);
  }
  return copy;
}

Result<Ok, CudaError> order_copy(const DriverApi& driver, const HomeCopy& copy,
                                 DeviceAddress tensor, DeviceAddress image, CopyDirection direction,
                                 CUstream stream) {
  const bool is_in = direction == CopyDirection::ToImage;
  const DeviceAddress from = is_in ? tensor : image;
  const DeviceAddress to = is_in ? image : tensor;
  if (copy.rows == 1 && copy.slices == 1) {
    return cuda_call(driver, "cuMemcpyAsync",
                     driver.cuMemcpyAsync(to, from, copy.row_bytes, stream));
  }
  CUDA_MEMCPY3D each{};
  each.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  each.srcDevice = from;
  each.srcPitch = is_in ? copy.row_pitch : copy.row_bytes;
  each.srcHeight = is_in ? copy.slice_rows : copy.rows;
  each.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  each.dstDevice = to;
  each.dstPitch = is_in ? copy.row_bytes : copy.row_pitch;
  each.dstHeight = is_in ? copy.rows : copy.slice_rows;
  each.WidthInBytes = copy.row_bytes;
  each.Height = copy.rows;
  each.Depth = copy.slices;
  return cuda_call(driver, "cuMemcpy3DAsync", driver.cuMemcpy3DAsync(&each, stream));
}

}  // namespace harpe::cuda
