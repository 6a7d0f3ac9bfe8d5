#pragma once

#include <random>

#include "tests/support/example_forms.h"

namespace harpe::test {

// A random form of a random mixture of experts on 2 to 6 ranks, at sizes that leave blocks uneven
// and empty: digits, slabs, homes, loops and moves that mostly suit each other.
[[nodiscard]] Example draw_routed_form(std::mt19937_64& random);

// The same of a layer that can be run: `experts`, whose leaves follow the route.
[[nodiscard]] Example draw_expert_form(std::mt19937_64& random);

}  // namespace harpe::test
