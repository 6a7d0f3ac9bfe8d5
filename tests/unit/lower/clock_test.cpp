#include "lower/clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/rng.h"

namespace harpe {
namespace {

constexpr std::size_t kStrands = 9000;  // several branches of pages, the last one partial

// Clocks and plain rows agree after the same random steps, and shared pages never change.
TEST(Clock, joins_and_sets_like_plain_rows) {
  Clock::Account account = 0;
  std::vector<Clock> clocks(6, Clock(kStrands, account));
  std::vector<std::vector<std::int32_t>> rows(clocks.size(),
                                              std::vector<std::int32_t>(kStrands, -1));
  std::uint64_t drawn = 0;
  const auto below = [&](std::uint64_t end) { return mix_bits(++drawn * kStreamStep) % end; };
  for (int step = 0; step < 1500; ++step) {
    const auto own = below(clocks.size());
    const auto other = below(clocks.size());
    const auto strand = below(kStrands);
    switch (below(3)) {
      case 0:
        clocks[own].set(strand, step % 50);
        rows[own][strand] = step % 50;
        break;
      case 1:
        clocks[own].join(clocks[other]);
        for (std::size_t s = 0; s < kStrands; ++s) {
          rows[own][s] = std::max(rows[own][s], rows[other][s]);
        }
        break;
      default:
        clocks[own] = clocks[other];
        rows[own] = rows[other];
    }
    for (std::size_t s = 0; s < kStrands; ++s) ASSERT_EQ(clocks[own].at(s), rows[own][s]);
  }
  for (std::size_t i = 0; i < clocks.size(); ++i) {
    for (std::size_t s = 0; s < kStrands; ++s) ASSERT_EQ(clocks[i].at(s), rows[i][s]);
  }
}

TEST(Clock, takes_memory_for_what_is_not_said_elsewhere) {
  Clock::Account account = 0;
  {
    Clock one(kStrands, account);
    one.set(3, 1);
    const Clock::Account of_page = account;
    EXPECT_GT(of_page, 0);
    std::vector<Clock> copies(100, one);
    EXPECT_EQ(account, of_page);
    for (Clock& copy : copies) copy.join(one);
    EXPECT_EQ(account, of_page);
    copies.front().set(3, 2);
    EXPECT_EQ(account, 2 * of_page);
    one.join(copies.front());  // has no newer entry than the other: takes over its page
    copies = {};
    EXPECT_EQ(account, of_page);
  }
  EXPECT_EQ(account, 0);
}

}  // namespace
}  // namespace harpe
