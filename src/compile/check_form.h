#pragma once

#include <cstdint>

#include "ir/form.h"
#include "ir/program.h"
#include "machine/mesh.h"
#include "support/diag.h"

namespace harpe {

// Larger plans are not made: there is no room for them.
constexpr std::int64_t kMostTasks = 4'000'000;

// May the plan be made? What would be lowered for minutes into a plan that nothing takes is
// refused. Errors: I503 more than so many tasks.
[[nodiscard]] Checked<Ok> check_steps(const Mesh& mesh, const NormalForm& form,
                                      std::int64_t most = kMostTasks);

// Is the form one that lowers? Of what has too many steps for that, as far as its rules tell.
// Errors: lower's; check_rules'.
[[nodiscard]] Checked<Ok> check_form(const Program& program, const Mesh& mesh,
                                     const NormalForm& form);

}  // namespace harpe
