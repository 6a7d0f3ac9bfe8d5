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

// Plans that differ from this one in one small fault each, at most `per_kind` of every kind. A
// dropped task stays in its queue and does nothing, so that what it ordered stays ordered; signals
// that a fault needs get signals of their own: what is left wrong is the meaning, not the form.
[[nodiscard]] std::vector<Mutant> make_mutants(const Plan& plan, std::size_t per_kind,
                                               std::mt19937_64& random);

}  // namespace harpe::test
