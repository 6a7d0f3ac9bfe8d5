#pragma once

#include <chrono>

#include "support/units.h"

namespace harpe {

// A time that a clock gave, as the simulator counts it.
[[nodiscard]] constexpr Picoseconds picoseconds(std::chrono::nanoseconds time) {
  return Picoseconds(saturating_multiply(time.count(), 1000));
}

}  // namespace harpe
