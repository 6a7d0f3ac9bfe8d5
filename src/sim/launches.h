#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"
#include "sim/kernel_work.h"

namespace harpe {

// Per task the number of its launch, alike for those of one kernel of a queue that a GPU launches
// at once. A kernel for products has panels of rows that share a B, each with pieces of depth; what
// a schedule makes one kernel (`fuse`, `chunk`) and has other B's is a launch each (docs/gpu.md).
[[nodiscard]] std::vector<std::int32_t> find_launches(const Plan& plan);

// How many more tiles of `tile` rows panels have that are tiled each by itself than as one: parts
// with one target are one panel. Requires: parts of products.
[[nodiscard]] double tiles_apart(std::span<const LaunchPart> parts, double tile);

}  // namespace harpe
