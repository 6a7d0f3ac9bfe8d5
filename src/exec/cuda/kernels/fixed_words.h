#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "exec/cuda/kernels/touched.h"

namespace harpe::cuda {

// Addresses of launches that are not arguments of their kernels and copies, so that they cannot be
// replaced one by one.
struct FixedWords {
  std::vector<DeviceAddress> words;     // of tables in memory, and of libraries
  std::vector<AddressRange> distances;  // operands whose relative distances are arguments

  // Adds the words of a table.
  void add_table(std::span<const std::byte> table);
  // Whether these addresses fix `memory` to its place.
  [[nodiscard]] bool fix(const AddressRange& memory) const;
};

}  // namespace harpe::cuda
