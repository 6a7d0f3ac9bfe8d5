#pragma once

#include <cstdint>

#include "sim/build.h"

namespace harpe {

// The same workload with every activity's work cut into `parts` equal ones: part i waits for part i
// of what its activity waits for, so that a consumer starts when the first part of what it reads is
// there. A collective's member waits for one source after the other.
[[nodiscard]] BuiltWorkload in_tiles(const BuiltWorkload& built, std::int64_t parts);

// Parts that keep the workload below a few hundred thousand activities, at most 16.
[[nodiscard]] std::int64_t tiles_for(const BuiltWorkload& built);

}  // namespace harpe
