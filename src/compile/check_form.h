#pragma once

#include <cstdint>

#include "ir/form.h"
#include "ir/program.h"
#include "machine/mesh.h"
#include "support/diag.h"

namespace harpe {

// Plans with more tasks are not made, because their memory would not suffice.
constexpr std::int64_t kMostTasks = 4'000'000;

// Refuses a form whose lowering would take minutes and give a plan that nothing accepts. Errors:
// I503 more than `most` tasks.
[[nodiscard]] Checked<Ok> check_steps(const Mesh& mesh, const NormalForm& form,
                                      std::int64_t most = kMostTasks);

// Checks that the form lowers. If it has too many steps for that, checks only its rules. Errors:
// lower's; check_rules'.
[[nodiscard]] Checked<Ok> check_form(const Program& program, const Mesh& mesh,
                                     const NormalForm& form);

}  // namespace harpe
