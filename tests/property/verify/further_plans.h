#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace harpe::test {

struct Lowered {
  std::string name;
  Plan plan;
};

// What the examples lack: every fence policy, a kernel that waits for transfers by SMs beside it,
// results added in their owners' memory, and parts kept at home.
[[nodiscard]] std::vector<Lowered> lowered_further();

}  // namespace harpe::test
