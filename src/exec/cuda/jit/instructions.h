#pragma once

#include <cstdint>
#include <string_view>

#include "support/diag.h"

namespace harpe::cuda {

// Counts of some instructions in a kernel's machine code.
struct InstructionCounts {
  std::int64_t all = 0;
  std::int64_t matrix = 0;  // HGMMA
  std::int64_t local = 0;   // LDL, STL
  std::int64_t moves = 0;   // R2UR between HGMMAs of one group, where more than a few
  friend bool operator==(const InstructionCounts&, const InstructionCounts&) = default;
};

// Counts instructions of the kernel in a cubin for sm_90a, without a disassembler. `name` is for
// messages. Errors: G036.
[[nodiscard]] Checked<InstructionCounts> count_instructions(std::string_view name,
                                                            std::string_view cubin);

}  // namespace harpe::cuda
