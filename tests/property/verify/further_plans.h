#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace harpe::test {

struct Lowered {
  std::string name;
  Plan plan;
};

// Plans beyond the examples: every fence policy, a kernel that waits for SM transfers beside it,
// results added in their owners' memory, and partial results kept at home.
[[nodiscard]] std::vector<Lowered> lowered_further();

}  // namespace harpe::test
