#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "machine/machine.h"

namespace harpe {

struct ProfileOptions {
  std::int64_t ranks = 0;  // that work at once; 0: one per core
  bool quick = false;      // few and small shapes: figures are rough
  std::function<void(std::string_view stage)> progress = {};
};

// Measures this computer as the machine of the CPU executor: every figure is of all ranks at work
// at once, so that what they share is in it. Takes under a minute. docs/machine.md says what is
// measured and what is fitted.
[[nodiscard]] Machine profile_cpu(const ProfileOptions& options);

}  // namespace harpe
