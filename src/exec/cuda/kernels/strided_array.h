#pragma once

#include <cstdint>
#include <vector>

#include "exec/cuda/runtime/tensor_map_spec.h"
#include "ir/dtype.h"

namespace harpe::cuda {

// An array as kernels have it: its first element, and how many steps of how many elements.
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

// What a kernel reads and stores, of a kernel whose operands a launch plan states: what arrives
// together, and what is stored together of which arrivals.
struct KernelArrays {
  struct Panel {
    DType dtype = DType::BF16;  // that it is stored in
    bool adds = false;          // to what is there
    std::vector<std::int32_t> meets = {};
    std::vector<StridedArray> reads = {};
    std::vector<StridedArray> stores = {};
  };
  std::vector<std::vector<StridedArray>> arrivals;
  std::vector<Panel> panels;
  std::int32_t joins = 1;  // launches of tasks alone, side by side in one
};

}  // namespace harpe::cuda
