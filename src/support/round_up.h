#pragma once

#include <cstdint>

namespace harpe {

// The smallest multiple of `step` that is not below `value`. Requires: value >= 0, step > 0.
[[nodiscard]] constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

}  // namespace harpe
