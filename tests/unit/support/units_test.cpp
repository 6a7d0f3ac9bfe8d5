#include "support/units.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace harpe {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

TEST(Saturating, sums_and_products_stop_at_the_ends) {
  EXPECT_EQ(saturating_add(kMost - 1, 1), kMost);
  EXPECT_EQ(saturating_add(kMost, 1), kMost);
  EXPECT_EQ(saturating_add(kLeast, -1), kLeast);
  EXPECT_EQ(saturating_add(kMost, kLeast), -1);
  EXPECT_EQ(saturating_multiply(3, -5), -15);
  EXPECT_EQ(saturating_multiply(kMost, 2), kMost);
  EXPECT_EQ(saturating_multiply(kLeast, -1), kMost);
  EXPECT_EQ(saturating_multiply(kMost, -2), kLeast);
  EXPECT_EQ(saturating_multiply(-2, kMost), kLeast);
}

TEST(Saturating, casts_go_towards_zero_and_stop_at_the_ends) {
  EXPECT_EQ(saturating_cast(2.9), 2);
  EXPECT_EQ(saturating_cast(-2.9), -2);
  const double largest = std::nextafter(0x1p63, 0);
  EXPECT_EQ(saturating_cast(largest), static_cast<std::int64_t>(largest));
  EXPECT_EQ(saturating_cast(0x1p63), kMost);
  EXPECT_EQ(saturating_cast(HUGE_VAL), kMost);
  EXPECT_EQ(saturating_cast(std::nan("")), kMost);
  EXPECT_EQ(saturating_cast(-0x1p63), kLeast);
  EXPECT_EQ(saturating_cast(-HUGE_VAL), kLeast);
}

TEST(Picoseconds, are_rounded_to_the_nearest) {
  EXPECT_EQ(from_seconds(1.4e-12), Picoseconds(1));
  EXPECT_EQ(from_seconds(1.6e-12), Picoseconds(2));
  EXPECT_EQ(from_seconds(-1.6e-12), Picoseconds(-2));
  EXPECT_EQ(from_microseconds(2.5), Picoseconds(2'500'000));
}

TEST(Picoseconds, what_is_too_long_stays_the_longest) {
  const Picoseconds longest = Picoseconds::longest();
  EXPECT_EQ(from_seconds(9.3e6), longest);
  EXPECT_EQ(from_seconds(1 / 0x1p-1074), longest);
  EXPECT_EQ(from_seconds(std::nan("")), longest);
  EXPECT_LT(from_seconds(9.2e6), longest);
  EXPECT_EQ(longest + Picoseconds(1), longest);
  EXPECT_EQ(longest + longest, longest);
  Picoseconds sum = from_seconds(5e6);
  sum += from_seconds(5e6);
  EXPECT_EQ(sum, longest);
  EXPECT_EQ(longest.scaled(0.125), longest);
  EXPECT_EQ(from_seconds(5e6).scaled(4, 2), longest);
  EXPECT_EQ(Picoseconds(100).scaled(1, 8), Picoseconds(13));
  EXPECT_EQ(Picoseconds(kLeast) - Picoseconds(1), Picoseconds(kLeast));
  EXPECT_EQ(longest - Picoseconds(-1), longest);
  EXPECT_EQ(longest - Picoseconds(5), Picoseconds(kMost - 5));
}

}  // namespace
}  // namespace harpe
