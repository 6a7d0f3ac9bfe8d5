#pragma once

#include <optional>
#include <span>

#include "exec/cuda/actions/launch_spec.h"

namespace harpe::cuda {

// A launch for tensor cores, and the flag it would have to wait for; none where that is null.
struct ArrivingLaunch {
  LaunchSpec spec;
  device::FlagWait ready{};
};

// One launch that does the work of all in their order and waits inside for each one's flag:
// products that write other rows of C, or add further columns of A; attention over further keys.
// None where they are not such, or a library's. Requires: at least one; `wait` where one has a
// flag.
[[nodiscard]] std::optional<LaunchSpec> merge(std::span<const ArrivingLaunch> launches,
                                              const device::WaitContext& wait);

}  // namespace harpe::cuda
