#pragma once

#include <memory>
#include <vector>

#include "exec/cuda/kernels/plan_launches.h"
#include "exec/cuda/profile/crew.h"

namespace harpe::cuda::profile {

// How copies are made, with the names of plans.
enum class Way : std::uint8_t { Engine, Kernel };

// The launch that plans use to copy `bytes`, a multiple of 16. `blocks` of the kernel; 0: as in
// plans.
[[nodiscard]] Checked<LaunchSpec> copy_spec(const Member& member, Way way, DeviceAddress to,
                                            DeviceAddress from, std::int64_t bytes,
                                            std::int64_t blocks = 0);
[[nodiscard]] LaunchChoice choice_of(const Member& member);

using SharedLaunches = std::shared_ptr<const Launches>;
// Prepares the launches for capture. Errors: those of loading kernels.
[[nodiscard]] Checked<SharedLaunches> make_ready(const Member& member, const LaunchSpecs& specs);
// Enqueues them `times` times in a queue.
[[nodiscard]] Checked<Ok> enqueue(const Member& member, const SharedLaunches& launches,
                                  std::int64_t times = 1, std::size_t queue = 0);

// How many operations of `seconds` each fill a timed graph.
[[nodiscard]] std::int64_t times_of(double seconds, std::int64_t most);

}  // namespace harpe::cuda::profile
