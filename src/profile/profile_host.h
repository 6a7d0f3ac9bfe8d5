#pragma once

#include <string>

#include "profile/profile_crew.h"
#include "profile/profile_fit.h"
#include "support/units.h"

namespace harpe {

// Copies out of a neighbour's buffer, all ranks at once; `largest` bytes at most.
[[nodiscard]] CopyRate profile_copies(const ProfileCrew& crew, std::int64_t largest);

// From the end of a task of the CPU executor to the start of the next of its queue, where that
// waits for nothing else.
[[nodiscard]] double seconds_between_tasks();

// Bytes of a core's share of the largest cache it has, or 0 where the system does not say.
[[nodiscard]] double bytes_of_cache();

}  // namespace harpe
