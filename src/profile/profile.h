#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "machine/machine.h"

namespace harpe {

struct ProfileOptions {
  std::int64_t ranks = 0;  // that work in parallel; 0: one per core
  bool quick = false;      // few, small shapes: figures are rough
  std::function<void(std::string_view stage)> progress = {};
};

// Measures this computer as the machine of the CPU executor. All ranks work during every
// measurement, so that figures include contention for shared hardware. Takes under a minute.
// docs/machine.md says what is measured and what is fitted.
[[nodiscard]] Machine profile_cpu(const ProfileOptions& options);

}  // namespace harpe
