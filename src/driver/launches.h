#pragma once

#include <string>

#include "plan/plan.h"
#include "support/diag.h"

namespace harpe {

// The text of what H200s launch for a plan, a rank to a GPU. Requires: a verified plan.
// `paranoid`: it is read back and compared, as by Session.
// Errors: G001 a build without the CUDA back end; what GPUs cannot do (describe_launches).
[[nodiscard]] Checked<std::string> show_launches(const Plan& plan, bool paranoid);

}  // namespace harpe
