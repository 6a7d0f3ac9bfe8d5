#pragma once

#include <string>

#include "profile/profile_crew.h"
#include "profile/profile_fit.h"
#include "support/units.h"

namespace harpe {

// The rate of copies from a neighbour's buffer, by all ranks in parallel, of at most `largest`
// bytes.
[[nodiscard]] CopyRate profile_copies(const ProfileCrew& crew, std::int64_t largest);

// The time from the end of a CPU executor's task to the start of the next one in its queue, if that
// waits for nothing else.
[[nodiscard]] double seconds_between_tasks();

// A core's share of the bytes of its largest cache; 0 where the system does not report it.
[[nodiscard]] double bytes_of_cache();

}  // namespace harpe
