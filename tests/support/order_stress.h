#pragma once

#include "tests/support/rank_group.h"

namespace harpe::transport::test {

// Rank 0 sends numbered messages in groups to all other ranks. A message is two puts, the second
// with a signal. On each signal the receiver checks that both puts have arrived completely.
struct StressOptions {
  std::int64_t signals = 10'000;  // to each receiver
  std::int64_t bytes = 256;       // per message; a multiple of 16
  int group = 8;                  // messages per ordering point, if the policy groups them
  int window = 16;                // messages in flight to one receiver: its slots
};

struct StressFacts {
  std::int64_t signals = 0;  // received by all ranks
  std::int64_t early = 0;    // of them, signals that overtook their data
  double seconds = 0;
  Counters counters{};  // of rank 0
};

[[nodiscard]] std::vector<std::size_t> stress_sizes(const StressOptions& options, int ranks);
// Called by every rank; each gets the facts of all ranks.
[[nodiscard]] StressFacts run_order_stress(RankEnd& end, int ranks, const StressOptions& options);

}  // namespace harpe::transport::test
