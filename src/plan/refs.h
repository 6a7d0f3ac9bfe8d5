#pragma once

#include "plan/plan.h"

namespace harpe {

// Whether both name a block of one allocation.
[[nodiscard]] bool meet(const Ref& one, const Ref& other);

}  // namespace harpe
