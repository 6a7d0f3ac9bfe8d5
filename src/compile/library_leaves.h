#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/form.h"
#include "plan/plan.h"

namespace harpe {

// A plan's form with libraries' kernels for the leaves that they support as planned, and the names
// of these kernels.
struct LibraryLeaves {
  NormalForm form;
  std::vector<std::string> kernels;
};

// Selects leaves with 16-bit operands that have no kernel yet, wait for nothing inside and access
// no other rank's memory; for attention, only if no block continues another block's state. None if
// there are no such leaves.
[[nodiscard]] std::optional<LibraryLeaves> use_library_leaves(const Plan& plan);

}  // namespace harpe
