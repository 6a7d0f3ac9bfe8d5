#pragma once

#include <cstdint>

#include "sim/build.h"

namespace harpe {

// The same workload with every activity's work cut into `parts` equal ones. Part i waits for part i
// of the activities before, so that a consumer starts when the first part of its operands is there.
// A collective's member waits for one source after the other.
[[nodiscard]] BuiltWorkload in_tiles(const BuiltWorkload& built, std::int64_t parts);

// The number of parts, at most 16, that keeps the workload below a few hundred thousand activities.
[[nodiscard]] std::int64_t tiles_for(const BuiltWorkload& built);

}  // namespace harpe
