#pragma once

#include <vector>

#include "exec/cuda/kernels/launch_spec.h"

namespace harpe::cuda {

// Bytes [begin, end) of a GPU's memory.
struct AddressRange {
  DeviceAddress begin = 0;
  DeviceAddress end = 0;

  [[nodiscard]] bool holds(DeviceAddress address) const {
    return begin <= address && address < end;
  }
};

// Where launches keep addresses otherwise than in the arguments of their kernels and copies: there
// they cannot be replaced one by one.
struct FixedWords {
  std::vector<DeviceAddress> words;     // of tables in memory, and of libraries
  std::vector<AddressRange> distances;  // operands whose distances are arguments

  void add(const LaunchSpec& spec);
  // Whether memory there has to stay where it is.
  [[nodiscard]] bool fix(const AddressRange& memory) const;
};

}  // namespace harpe::cuda
