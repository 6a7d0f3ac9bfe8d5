#pragma once

#include <string>

#include "ir/form.h"
#include "ir/program.h"

namespace harpe {

// One text for all forms that say the same schedule: canonicalised, digits and parts of the mesh
// named by position, the form's own name left out (commir.md 11.2). Equal texts, equal plans.
[[nodiscard]] std::string canonical_text(const Program& program, const NormalForm& form);

}  // namespace harpe
