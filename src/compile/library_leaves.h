#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/form.h"
#include "plan/plan.h"

namespace harpe {

// A plan's form with libraries' kernels for leaves that they can do as the plan has them, and
// which.
struct LibraryLeaves {
  NormalForm form;
  std::vector<std::string> kernels;
};

// Leaves of operands of 16 bits that have no kernel yet, wait for nothing inside, and reach no
// other rank's memory; of attention, where no block goes on with another's state. None where there
// are none.
[[nodiscard]] std::optional<LibraryLeaves> use_library_leaves(const Plan& plan);

}  // namespace harpe
