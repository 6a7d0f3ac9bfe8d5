#pragma once

#include "ir/form.h"
#include "support/diag.h"

namespace harpe {

// The capability matrix of commir.md 7.4, as far as the move states anything. Errors: F245.
[[nodiscard]] Checked<Ok> check_transport(const Move& move);

}  // namespace harpe
