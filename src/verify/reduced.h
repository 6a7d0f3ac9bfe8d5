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

// The same schedule in small (commir.md 10.6): every mesh axis, and every digit, cut to at most 3
// and to at most 4 values, with the extents a digit shares with mesh axes kept shared, and axes
// just long enough for two grains a block. Lengths that were equal, uneven or left blocks empty
// still are. For the caller to lower and verify in place of a plan too large to check block by
// block; one case where both cuts agree. Pure. Requires: program is ground. Errors: V201 names that
// do not resolve, V202 a form that has no small likeness.
[[nodiscard]] Checked<std::vector<ReducedCase>> reduced_cases(const Program& program,
                                                              const Mesh& mesh,
                                                              const NormalForm& form);

}  // namespace harpe
