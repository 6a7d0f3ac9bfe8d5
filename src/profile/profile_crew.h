#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace harpe {

// The call that one rank repeats while it is timed.
using ProfileBody = std::function<void()>;

// Threads that represent ranks; all run the same body while it is timed.
struct ProfileCrew {
  std::int64_t ranks = 1;
  std::int64_t cores = 1;
  std::chrono::milliseconds budget{60};  // per figure

  // Seconds per call of a rank's body: the lower quartile, which excludes the time of other
  // programs, or the mean if several ranks share a core. `make(rank)` is called on the rank's own
  // thread.
  [[nodiscard]] double seconds_per_call(
      const std::function<ProfileBody(std::int64_t rank)>& make) const;
};

// Half of the time from one thread's write of a signal until it sees the answer.
[[nodiscard]] double seconds_per_signal(std::chrono::milliseconds budget);

}  // namespace harpe
