#pragma once

#include <chrono>

#include "support/units.h"

namespace harpe {

// A clock's time in the simulator's unit.
[[nodiscard]] constexpr Picoseconds picoseconds(std::chrono::nanoseconds time) {
  return Picoseconds(saturating_multiply(time.count(), 1000));
}

}  // namespace harpe
