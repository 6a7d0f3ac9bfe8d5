#pragma once

#include <random>

#include "tests/support/example_forms.h"

namespace harpe::test {

// A random form of a random mixture of experts on 2 to 6 ranks, at sizes with uneven and empty
// blocks. Its digits, slabs, homes, loops and moves mostly fit together.
[[nodiscard]] Example draw_routed_form(std::mt19937_64& random);

// The same for a runnable layer: `experts`, whose leaves follow the route.
[[nodiscard]] Example draw_expert_form(std::mt19937_64& random);

}  // namespace harpe::test
