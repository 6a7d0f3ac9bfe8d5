#pragma once

#include "compile/request.h"
#include "ir/form.h"
#include "ir/program.h"
#include "machine/mesh.h"
#include "search/constraints.h"
#include "support/diag.h"

namespace harpe {

// The homes and layouts that a request fixes.
// Errors: U109 unknown names, and a layout that no schedule can have; U116 a buffer twice.
[[nodiscard]] Checked<Constraints> read_constraints(const Program& program, const Mesh& mesh,
                                                    const Request& request);

// Checks that the named schedule's form satisfies the constraints. Errors: check_constraints', with
// the named schedules that do.
[[nodiscard]] Checked<Ok> check_named(const Program& program, const Mesh& mesh,
                                      const NormalForm& form, const Constraints& constraints);

}  // namespace harpe
