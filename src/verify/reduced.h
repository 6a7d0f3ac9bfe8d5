#pragma once

#include <vector>

#include "ir/form.h"
#include "ir/program.h"
#include "machine/mesh.h"
#include "support/diag.h"

namespace harpe {

struct ReducedCase {
  Program program;
  Mesh mesh;
  NormalForm form;
};

// Small versions of the schedule (commir.md 10.6): every mesh axis and every digit is cut to at
// most 3, and to at most 4 values. Extents that a digit shares with mesh axes stay shared, and axes
// are just long enough for two grains per block. Equal lengths stay equal, uneven ones uneven, and
// empty blocks empty. The caller lowers and verifies these in place of a plan that is too large to
// check block by block. Returns one case if both cuts agree. Pure. Requires: program is ground.
// Errors: V201 names that do not resolve, V202 the form has no small version.
[[nodiscard]] Checked<std::vector<ReducedCase>> reduced_cases(const Program& program,
                                                              const Mesh& mesh,
                                                              const NormalForm& form);

}  // namespace harpe
