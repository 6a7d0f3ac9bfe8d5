#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace harpe {

// What one rank does again and again while it is timed.
using ProfileBody = std::function<void()>;

// Threads that stand for ranks, all busy with the same while it is timed.
struct ProfileCrew {
  std::int64_t ranks = 1;
  std::int64_t cores = 1;
  std::chrono::milliseconds budget{60};  // of one figure

  // Seconds a call of a rank's body takes: that of three quarters of the calls or more, which
  // leaves out what other programs took; or the mean where ranks take turns on cores. `make(rank)`
  // is called on the rank's own thread.
  [[nodiscard]] double seconds_per_call(
      const std::function<ProfileBody(std::int64_t rank)>& make) const;
};

// Half of the time from a signal being written by one thread until its answer is seen.
[[nodiscard]] double seconds_per_signal(std::chrono::milliseconds budget);

}  // namespace harpe
