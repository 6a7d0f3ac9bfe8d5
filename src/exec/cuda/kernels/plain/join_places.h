#pragma once

#include <optional>
#include <span>

#include "exec/cuda/kernels/launch_spec.h"

namespace harpe::cuda {

// Whether two launches are moves, or functions, that differ in nothing but where their operands
// are.
[[nodiscard]] bool differ_in_places(const PlainLaunch& one, const PlainLaunch& other);

// Such launches as one with a table of places, of which so many multiprocessors may work at once.
// None where they are others. Requires: two at least.
[[nodiscard]] std::optional<LaunchSpec> join_places(std::span<const LaunchSpec> run,
                                                    int multiprocessors);

}  // namespace harpe::cuda
