#pragma once

#include <cstdint>
#include <optional>

#include "plan/plan.h"
#include "support/diag.h"

namespace harpe {

// Bytes that executing the plan needs here: all ranks' arenas, whole inputs and outputs, and for a
// check the reference in f64.
[[nodiscard]] std::int64_t bytes_to_run(const Plan& plan, bool check);

// Memory that this machine can provide without swapping; none if the system does not report it.
[[nodiscard]] std::optional<std::int64_t> available_bytes();

// Errors: I502.
[[nodiscard]] Checked<Ok> check_memory(std::string_view what, std::int64_t needed);

}  // namespace harpe
