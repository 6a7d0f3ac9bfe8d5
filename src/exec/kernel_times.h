#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "exec/executor.h"

namespace harpe {

// A kernel that waits inside, as its events tell.
struct KernelTimes {
  std::chrono::nanoseconds reached{0};   // its queue had come to it
  std::chrono::nanoseconds launched{0};  // all was there that it begins behind
  std::chrono::nanoseconds begin = std::chrono::nanoseconds::max();  // of its first block
  std::chrono::nanoseconds end{0};                                   // of its last
  std::int64_t blocks = 0;                                           // that multiply
  std::vector<KernelEvent> stands;                                   // of those
};
// By the first of their tasks; without those of which no block multiplied.
[[nodiscard]] std::map<TaskId, KernelTimes> times_of(std::span<const KernelEvent> events);

// How long of [begin, end) blocks that multiply stood still, in the mean over all of them.
[[nodiscard]] std::chrono::nanoseconds stood_within(const KernelTimes& kernel,
                                                    std::chrono::nanoseconds begin,
                                                    std::chrono::nanoseconds end);

// How many blocks stand still from a moment on.
struct StandingBlocks {
  std::chrono::nanoseconds since{0};
  std::int64_t multiplying = 0;
  std::int64_t copying = 0;
  friend bool operator==(const StandingBlocks&, const StandingBlocks&) = default;
};
// In the order of time; the last is of none. Empty where no block stood still.
[[nodiscard]] std::vector<StandingBlocks> standing_blocks(std::span<const KernelEvent> events);

}  // namespace harpe
