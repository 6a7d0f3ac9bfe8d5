#pragma once

#include <cstdint>
#include <vector>

#include "exec/cuda/runtime/tensor_map_spec.h"
#include "ir/dtype.h"

namespace harpe::cuda {

// An array as kernels see it: its first element, and a count and a stride in elements per axis.
struct StridedArray {
  struct Extent {
    std::int64_t count = 1;
    std::int64_t stride = 0;
    friend bool operator==(const Extent&, const Extent&) = default;
  };
  DeviceAddress address = 0;
  std::int64_t element_bytes = 2;
  std::vector<Extent> extents;
};

// The operands of a kernel as launch plans state them: arrivals, which are operands that arrive
// together, and panels, which are stored as a whole and computed from some arrivals.
struct KernelArrays {
  struct Panel {
    DType dtype = DType::BF16;             // of what is stored
    bool adds = false;                     // it is added to what is there
    std::vector<std::int32_t> meets = {};  // indices of arrivals
    std::vector<StridedArray> reads = {};
    std::vector<StridedArray> stores = {};
  };
  std::vector<std::vector<StridedArray>> arrivals;
  std::vector<Panel> panels;
  std::int32_t joins = 1;  // the number of launches that were joined into this one
};

}  // namespace harpe::cuda
