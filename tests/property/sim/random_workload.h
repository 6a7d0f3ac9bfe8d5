#pragma once

#include <cstdint>

#include "sim/workload.h"
#include "support/rng.h"

namespace harpe {

// Small numbers from a seed.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed * kStreamStep) {}
  std::int64_t below(std::int64_t limit) {
    state_ += kStreamStep;
    return static_cast<std::int64_t>(mix_bits(state_) % static_cast<std::uint64_t>(limit));
  }

 private:
  std::uint64_t state_;
};

struct WorkloadSizes {
  std::int64_t activities = 30;
  std::int64_t queues = 5;
  std::int64_t resources = 4;
};

// Queues and dependencies follow the order of indices, rates fit the capacity, nothing is resident.
[[nodiscard]] Workload random_workload(std::uint64_t seed, const WorkloadSizes& sizes);

// `copies` equal parts in a ring: some uses and dependencies go to the next part's resources and
// activities, in all parts alike. Activity i of copy c is c * activities + i.
[[nodiscard]] Workload random_ring(std::uint64_t seed, const WorkloadSizes& sizes,
                                   std::int64_t copies);

}  // namespace harpe
