#pragma once

#include <string>

#include "driver/profile_crew.h"
#include "driver/profile_fit.h"
#include "support/units.h"

namespace harpe {

// Copies out of a neighbour's buffer, all ranks at once; `largest` bytes at most.
[[nodiscard]] CopyRate profile_copies(const ProfileCrew& crew, std::int64_t largest);

// From the end of a task of the CPU executor to the start of the next of its queue, where that
// waits for nothing else.
[[nodiscard]] double seconds_between_tasks();

// "AMD EPYC, 2 cores", as the system says.
[[nodiscard]] std::string describe_host();
// Bytes of a core's share of the largest cache it has, or 0 where the system does not say.
[[nodiscard]] double bytes_of_cache();

}  // namespace harpe
