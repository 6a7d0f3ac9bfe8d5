#pragma once

#include "ir/form.h"
#include "support/diag.h"

namespace harpe {

// Checks the attributes that a move states against the capability matrix of commir.md 7.4. Errors:
// F245.
[[nodiscard]] Checked<Ok> check_transport(const Move& move);

}  // namespace harpe
