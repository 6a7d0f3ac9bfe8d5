#include "exec/cuda/device/shares.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace harpe::device {
namespace shares_test {

// The definition, in 64 bits: share i begins at i * all / shares.
std::int64_t begin_of(std::int64_t all, std::int64_t shares, std::int64_t share) {
  return share * all / shares;
}

void expect_owner(int all, int shares, int at) {
  const int share = share_of(at, all, shares);
  ASSERT_LE(begin_of(all, shares, share), at) << all << " in " << shares;
  ASSERT_GT(begin_of(all, shares, share + 1), at) << all << " in " << shares;
}

TEST(Shares, are_those_of_the_definition) {
  for (const int shares : {1, 2, 3, 7, 64, 120, 128, 131, 132, 512}) {
    for (int all = 1; all <= 2 * shares + 3; ++all) {
      for (int share = 0; share <= shares; ++share) {
        ASSERT_EQ(share_begin(all, share, divisor(shares)), begin_of(all, shares, share));
      }
      for (int at = 0; at < all; ++at) expect_owner(all, shares, at);
    }
  }
}

TEST(Shares, hold_up_to_the_largest_product) {
  for (const int shares : {1, 2, 127, 132, 512}) {
    const int all = std::numeric_limits<int>::max() / shares;
    for (int share = 0; share <= shares; ++share) {
      const auto begin = static_cast<int>(begin_of(all, shares, share));
      ASSERT_EQ(share_begin(all, share, divisor(shares)), begin);
      for (const int at : {begin - 1, begin}) {
        if (at >= 0 && at < all) expect_owner(all, shares, at);
      }
    }
  }
}

// As the producer of few queries cuts more than the product allows: whole multiples and the rest.
TEST(Shares, may_be_cut_in_two_steps) {
  for (const int shares : {1, 2, 127, 132}) {
    for (const int all : {shares, 1'000'003, std::numeric_limits<int>::max()}) {
      const int rest = all % divisor(shares);
      for (int share = 0; share <= shares; ++share) {
        const std::int64_t begin = std::int64_t{share} * (all / divisor(shares)) +
                                   share_begin(rest, share, divisor(shares));
        ASSERT_EQ(begin, begin_of(all, shares, share)) << all << " in " << shares;
      }
    }
  }
}

}  // namespace shares_test
}  // namespace harpe::device
