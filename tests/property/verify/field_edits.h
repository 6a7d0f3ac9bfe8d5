#pragma once

#include <cstddef>
#include <random>
#include <vector>

#include "tests/property/verify/mutants.h"

namespace harpe::test {

// Plans that differ from this one in one field that an executor reads, at most `per_field` of each
// edit. A slot is edited on one rank and, in edits called `…-everywhere`, on all ranks at once, as
// rules about equal slots would refuse anything less.
[[nodiscard]] std::vector<Mutant> make_field_edits(const Plan& plan, std::size_t per_field,
                                                   std::mt19937_64& random);

}  // namespace harpe::test
