#pragma once

#include <string>

#include "ir/form.h"
#include "ir/program.h"

namespace harpe {

// One text for all forms of the same schedule: canonicalised, with digits and mesh parts named by
// position, and without the form's own name (commir.md 11.2). Equal texts give equal plans.
[[nodiscard]] std::string canonical_text(const Program& program, const NormalForm& form);

}  // namespace harpe
