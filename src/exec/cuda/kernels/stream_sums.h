#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "exec/cuda/runtime/device_memory.h"

namespace harpe::cuda {

// Memory for the sums of cut tiles, and for parts of few-row GEMMs and states of few queries. All
// bits of parts and states are 1 before and after each kernel. The kernels of one stream run one
// after the other and share this memory, which is as large as the largest of them needs.
class StreamSums {
 public:
  // Ensures at least `bytes` bytes once it is allocated.
  void reserve(std::int64_t bytes) { bytes_ = std::max(bytes_, bytes); }
  void reserve_parts(std::int64_t bytes) { part_bytes_ = std::max(part_bytes_, bytes); }
  // Call it after all kernels are prepared, before the first launch. Errors: G005, G008.
  [[nodiscard]] Checked<Ok> allocate(const Device& device) {
    if (bytes_ != 0) {
      HP_TRY(memory_, DeviceMemory::allocate(device, bytes_));
    }
    if (part_bytes_ != 0) {
      HP_TRY(parts_, DeviceMemory::filled(device, part_bytes_ / 4, 0xffffffffU));
    }
    return Ok{};
  }
  [[nodiscard]] DeviceAddress address() const { return memory_ ? memory_->address() : 0; }
  [[nodiscard]] DeviceAddress parts() const { return parts_ ? parts_->address() : 0; }

 private:
  std::int64_t bytes_ = 0;
  std::int64_t part_bytes_ = 0;
  std::optional<DeviceMemory> memory_;
  std::optional<DeviceMemory> parts_;
};

}  // namespace harpe::cuda
