#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "driver/measured.h"
#include "machine/machine.h"
#include "support/diag.h"
#include "support/units.h"

namespace harpe {

// How a machine's predictions compare with measurements of whole schedules.

struct Prediction {
  MeasuredCase measured;
  Picoseconds predicted;
  [[nodiscard]] double ratio() const { return predicted.microseconds() / measured.microseconds; }
};

// Of all predictions of a family, or of all that count.
struct Agreement {
  std::string family;
  bool counts = true;
  std::int64_t count = 0;
  double median_error = 0;  // |predicted / measured - 1|
  double error_90 = 0;      // that nine of ten do not exceed
  double mean_ratio = 0;    // geometric
  double spearman = 0;
  double kendall = 0;
};

struct Validation {
  std::vector<Prediction> predictions;
  std::vector<Agreement> agreements;  // by family, then "all"
};

// Lowers and simulates every measured case. Errors: read_measurements'; Session's; M117, M118.
[[nodiscard]] Checked<Validation> validate(
    Session& session, const std::string& folder, const Machine& machine,
    const std::function<void(std::string_view)>& progress = {});

}  // namespace harpe
