#pragma once

#include <optional>
#include <string>
#include <utility>

#include "support/check.h"

namespace harpe::testing_support {

// The message of the broken invariant raised by `action`; the test can then name the input.
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
