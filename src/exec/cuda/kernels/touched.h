#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "exec/cuda/device/used_rows.h"
#include "exec/cuda/runtime/tensor_map_spec.h"

namespace harpe::cuda {

// Bytes [begin, end) of a GPU's memory.
struct AddressRange {
  DeviceAddress begin = 0;
  DeviceAddress end = 0;

  [[nodiscard]] bool holds(DeviceAddress address) const {
    return begin <= address && address < end;
  }
  [[nodiscard]] bool meets(const AddressRange& other) const {
    return begin < other.end && other.begin < end;
  }
};

[[nodiscard]] inline AddressRange range_of(DeviceAddress address, std::int64_t bytes) {
  return {.begin = address, .end = address + static_cast<DeviceAddress>(bytes)};
}

// What a launch writes and reads, including numbers of rows in use.
struct Touched {
  std::vector<AddressRange> written;
  std::vector<AddressRange> read;

  void add(const device::UsedRows& used) {
    if (used.rows == nullptr) return;
    read.push_back(range_of(reinterpret_cast<DeviceAddress>(used.rows), sizeof(std::int32_t)));
    if (used.result == nullptr) return;
    written.push_back(range_of(reinterpret_cast<DeviceAddress>(used.result), sizeof(std::int32_t)));
  }
  [[nodiscard]] bool depends_on(const Touched& other) const {
    return any_meet(written, other.written) || any_meet(written, other.read) ||
           any_meet(read, other.written);
  }

 private:
  [[nodiscard]] static bool any_meet(const std::vector<AddressRange>& some,
                                     const std::vector<AddressRange>& all) {
    return std::ranges::any_of(some, [&](const AddressRange& one) {
      return std::ranges::any_of(all, [&](const AddressRange& other) { return one.meets(other); });
    });
  }
};

}  // namespace harpe::cuda
