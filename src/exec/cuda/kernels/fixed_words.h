#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "exec/cuda/kernels/touched.h"

namespace harpe::cuda {

// Where launches keep addresses otherwise than in the arguments of their kernels and copies: there
// they cannot be replaced one by one.
struct FixedWords {
  std::vector<DeviceAddress> words;     // of tables in memory, and of libraries
  std::vector<AddressRange> distances;  // operands whose distances are arguments

  // The words of a table.
  void add_table(std::span<const std::byte> table);
  // Whether memory there has to stay where it is.
  [[nodiscard]] bool fix(const AddressRange& memory) const;
};

}  // namespace harpe::cuda
