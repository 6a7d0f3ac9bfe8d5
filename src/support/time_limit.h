#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string_view>

#include "support/diag.h"

namespace harpe {

// When to give up long work: at a time, or when `interrupted` returns true. Without either, never.
// It is checked between parts of the work, each of which takes milliseconds.
struct TimeLimit {
  std::optional<std::chrono::steady_clock::time_point> end = std::nullopt;
  std::function<bool()> interrupted = nullptr;

  [[nodiscard]] bool is_over() const {
    return (end && std::chrono::steady_clock::now() >= *end) || (interrupted && interrupted());
  }
  // Errors: I505, which states that `work` was given up.
  [[nodiscard]] Checked<Ok> check(std::string_view work) const {
    if (!is_over()) return Ok{};
    return make_diag(DiagCode::I505, {{"work", work}});
  }
};

}  // namespace harpe
