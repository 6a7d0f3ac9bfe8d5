#pragma once

#include "compile/request.h"
#include "ir/form.h"
#include "ir/program.h"
#include "machine/mesh.h"
#include "search/constraints.h"
#include "support/diag.h"

namespace harpe {

// What a request fixes of homes and layouts.
// Errors: U109 names, and a layout that no schedule can have; U116 a buffer twice.
[[nodiscard]] Checked<Constraints> read_constraints(const Program& program, const Mesh& mesh,
                                                    const Request& request);

// A schedule of that name keeps to them. Errors: check_constraints', with the named ones that do.
[[nodiscard]] Checked<Ok> check_named(const Program& program, const Mesh& mesh,
                                      const NormalForm& form, const Constraints& constraints);

}  // namespace harpe
