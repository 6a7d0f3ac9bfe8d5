#pragma once

#include <optional>
#include <string>

#include "cli/terminal.h"
#include "measure/tune_by_runs.h"

namespace harpe::cli {

// The output of `harpe tune` about measuring.

// `--measure` with its related flags; none without it. Errors: U109, also for a flag that needs it;
// backend_of's, cache_of's; I102 a file that cannot be written.
[[nodiscard]] Checked<std::optional<MeasureRequest>> measure_request_of(const CommandLine& line);

[[nodiscard]] Rows measured_rows(const Measured& measured);
// Fastest first; then those without a time, with the reason.
[[nodiscard]] std::string print_measured(const Measured& measured);
// Requires: it was measured.
[[nodiscard]] Json measured_to_json(const MeasuredTuned& tuned);

// Returns 1 if a schedule or library computed a wrong result, 3 if a schedule ended in a fault,
// else 0. Prints which.
[[nodiscard]] int report_failures(const Measured& measured);

}  // namespace harpe::cli
