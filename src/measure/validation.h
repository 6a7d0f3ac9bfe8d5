#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/machine.h"
#include "measure/agreement.h"
#include "measure/measured.h"
#include "support/diag.h"
#include "support/units.h"

namespace harpe {

// Compares a machine's predictions with measured times of complete schedules.

struct Prediction {
  MeasuredCase measured;
  Picoseconds predicted;
  [[nodiscard]] double ratio() const { return predicted.microseconds() / measured.microseconds; }
};

struct Validation {
  std::vector<Prediction> predictions;
  std::vector<Agreement> agreements;  // by family, then "all"
};

// The errors of every operator with counted plans, in order of appearance, as lines of a machine.
// `note` states the source of the measurements.
[[nodiscard]] std::vector<PredictionError> errors_of(const Validation& validation,
                                                     const std::string& note);

struct ValidateOptions {
  std::string without = {};  // a pass that launch plans omit (launch_pass_names), or kAllPasses
  std::function<void(std::string_view)> progress = {};
};
// Launches each task by itself.
constexpr std::string_view kAllPasses = "all";

// Lowers and simulates every measured case with the launches of the measurement. Errors:
// read_measurements'; Session's; M117, M118.
[[nodiscard]] Checked<Validation> validate(Session& session, const std::string& folder,
                                           const Machine& machine,
                                           const ValidateOptions& options = {});

}  // namespace harpe
