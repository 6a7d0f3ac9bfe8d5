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
  std::string question;  // schedules that answer the same one compete
  [[nodiscard]] double ratio() const { return predicted_us / measured_us; }
};

struct Agreement {
  std::string family;  // what they are of
  bool counts = true;
  std::int64_t count = 0;
  double median_error = 0;  // |predicted / measured - 1|
  double error_90 = 0;      // that nine of ten do not exceed
  double mean_ratio = 0;    // geometric
  double spearman = 0;
  double kendall = 0;
  // How much longer the fastest of the first one and of the first eight by prediction takes than
  // the fastest of all, of the worst question; none where no two compete.
  std::optional<double> regret_1;
  std::optional<double> regret_8;
};

// Requires: not empty.
[[nodiscard]] Agreement agreement_of(const std::string& family, bool counts,
                                     const std::vector<TimePair>& pairs);

}  // namespace harpe
