#pragma once

#include "tests/support/rank_group.h"

namespace harpe::transport::test {

// Rank 0 sends numbered messages to all others, in groups, each in two puts of which the second
// is signalled; whoever gets a signal looks whether all of both is there.
struct StressOptions {
  std::int64_t signals = 10'000;  // to each receiver
  std::int64_t bytes = 256;       // of a message; a multiple of 16
  int group = 8;                  // messages that share an ordering point where the policy holds
  int window = 16;                // messages under way to a receiver: its slots
};

struct StressFacts {
  std::int64_t signals = 0;  // seen by all receivers
  std::int64_t early = 0;    // of them, those that came before their data
  double seconds = 0;
  Counters counters{};  // of rank 0
};

[[nodiscard]] std::vector<std::size_t> stress_sizes(const StressOptions& options, int ranks);
// On every rank; all get the facts of all.
[[nodiscard]] StressFacts run_order_stress(RankEnd& end, int ranks, const StressOptions& options);

}  // namespace harpe::transport::test
