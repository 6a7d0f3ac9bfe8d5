#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace harpe {

// How predicted times compare with measured ones.

struct TimePair {
  double predicted_us = 0;
  double measured_us = 0;
  std::string question;  // schedules with the same question compete
  [[nodiscard]] double ratio() const { return predicted_us / measured_us; }
};

struct Agreement {
  std::string family;  // the operator's family
  bool counts = true;
  std::int64_t count = 0;
  double median_error = 0;  // |predicted / measured - 1|
  double error_90 = 0;      // not exceeded by nine of ten
  double mean_ratio = 0;    // geometric
  double spearman = 0;
  double kendall = 0;
  // How much longer than the fastest of all takes the fastest among the first one, and among the
  // first eight, by prediction, for the worst question. None if no two compete.
  std::optional<double> regret_1;
  std::optional<double> regret_8;
};

// Requires: not empty.
[[nodiscard]] Agreement agreement_of(const std::string& family, bool counts,
                                     const std::vector<TimePair>& pairs);

}  // namespace harpe
