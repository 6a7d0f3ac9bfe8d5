#pragma once

#include <optional>
#include <string>
#include <utility>

#include "support/check.h"

namespace harpe::testing_support {

// What a broken invariant said while `action` ran, so that a test can name the input that broke it.
template <class Action>
[[nodiscard]] std::optional<std::string> internal_error_of(Action&& action) {
  try {
    std::forward<Action>(action)();
  } catch (const InternalError& error) {
    return error.what();
  }
  return std::nullopt;
}

}  // namespace harpe::testing_support
