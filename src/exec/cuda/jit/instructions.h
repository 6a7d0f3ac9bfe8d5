#pragma once

#include <cstdint>
#include <string_view>

#include "support/diag.h"

namespace harpe::cuda {

// How often some instructions stand in a kernel's machine code.
struct InstructionCounts {
  std::int64_t all = 0;
  std::int64_t matrix = 0;  // HGMMA
  std::int64_t local = 0;   // LDL, STL
  std::int64_t moves = 0;   // R2UR between an HGMMA and the next one of its group, where many
  friend bool operator==(const InstructionCounts&, const InstructionCounts&) = default;
};

// Reads the code of the kernel in a cubin for sm_90a, without a disassembler. `name` is for
// what is said. Errors: G036.
[[nodiscard]] Checked<InstructionCounts> count_instructions(std::string_view name,
                                                            std::string_view cubin);

}  // namespace harpe::cuda
