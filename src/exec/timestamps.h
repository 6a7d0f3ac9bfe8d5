#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace harpe {

// Which executions of a run on GPUs have a timestamp behind them: each, or, in a row
// (RunOptions::in_a_row), the first and the last. Timestamp 0 is before all executions.
class Timestamps {
 public:
  explicit Timestamps(std::int64_t executions = 1, bool in_a_row = false)
      : executions_(executions),
        last_(in_a_row ? std::min<std::int64_t>(executions, 2) : executions) {}

  [[nodiscard]] std::int64_t executions() const { return executions_; }
  [[nodiscard]] std::int64_t last() const { return last_; }
  [[nodiscard]] bool time_each() const { return last_ == executions_; }
  // The timestamp behind execution `i`, counted from 1, if it has one.
  [[nodiscard]] std::optional<std::int64_t> behind(std::int64_t i) const {
    if (time_each() || i == 1) return i;
    return i == executions_ ? std::optional(last_) : std::nullopt;
  }
  // The executions between timestamps `at` - 1 and `at`.
  [[nodiscard]] std::int64_t executions_until(std::int64_t at) const {
    return time_each() || at == 1 ? 1 : executions_ - 1;
  }

 private:
  std::int64_t executions_;
  std::int64_t last_;
};

}  // namespace harpe
