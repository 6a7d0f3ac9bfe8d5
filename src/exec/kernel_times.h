#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "exec/executor.h"

namespace harpe {

// A kernel that waits inside, according to its events.
struct KernelTimes {
  std::chrono::nanoseconds reached{0};   // its queue had reached it
  std::chrono::nanoseconds launched{0};  // all that it starts behind was done
  std::chrono::nanoseconds begin = std::chrono::nanoseconds::max();  // of its first block
  std::chrono::nanoseconds end{0};                                   // of its last
  std::int64_t blocks = 0;                                           // that compute
  std::vector<KernelEvent> stands;                                   // of those
};
// By the first task of each kernel; kernels without a computing block are left out.
[[nodiscard]] std::map<TaskId, KernelTimes> times_of(std::span<const KernelEvent> events);

// How long the computing blocks stood still within [begin, end), on average over them.
[[nodiscard]] std::chrono::nanoseconds stood_within(const KernelTimes& kernel,
                                                    std::chrono::nanoseconds begin,
                                                    std::chrono::nanoseconds end);

// The number of blocks that stand still from a moment on.
struct StandingBlocks {
  std::chrono::nanoseconds since{0};
  std::int64_t multiplying = 0;
  std::int64_t copying = 0;
  friend bool operator==(const StandingBlocks&, const StandingBlocks&) = default;
};
// By ascending time; the last entry counts no blocks. Empty if no block stood still.
[[nodiscard]] std::vector<StandingBlocks> standing_blocks(std::span<const KernelEvent> events);

}  // namespace harpe
