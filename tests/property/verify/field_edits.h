#pragma once

#include <cstddef>
#include <random>
#include <vector>

#include "tests/property/verify/mutants.h"

namespace harpe::test {

// Plans that each differ from this one in one field that an executor reads, at most `per_field` per
// edit. A slot is edited on one rank; edits called `…-everywhere` change it on all ranks, because
// rules about equal slots would refuse a single change.
[[nodiscard]] std::vector<Mutant> make_field_edits(const Plan& plan, std::size_t per_field,
                                                   std::mt19937_64& random);

}  // namespace harpe::test
