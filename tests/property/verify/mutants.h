#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace harpe::test {

struct Mutant {
  std::string mutation;
  Plan plan;
};

// Plans that each differ from this one in one small fault, at most `per_kind` per kind. A dropped
// task stays in its queue and does nothing, so that order is kept. New signals get unused words. So
// the remaining fault is one of meaning, not of form.
[[nodiscard]] std::vector<Mutant> make_mutants(const Plan& plan, std::size_t per_kind,
                                               std::mt19937_64& random);

}  // namespace harpe::test
