#include "exec/cuda/kernels/attention/device/decode_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>

namespace harpe::device {
namespace decode_order_test {

constexpr int kMostTiles = std::numeric_limits<int>::max();

// The definition, in 64 bits.
std::int64_t begin_of(std::int64_t tiles, std::int64_t count, std::int64_t share) {
  return share * tiles / count;
}

void expect_equal_shares(int tiles, int most, int from, int to) {
  const KeyShares shares(tiles, divisor(most));
  ASSERT_EQ(shares.count(), std::min(tiles, most));
  for (int share = from; share <= to; ++share) {
    ASSERT_EQ(shares.begin(share), begin_of(tiles, shares.count(), share))
        << tiles << " tiles, share " << share << " of " << shares.count();
  }
}

void expect_owner(int tiles, int most, int tile) {
  const KeyShares shares(tiles, divisor(most));
  const int share = shares.share_of(tile);
  ASSERT_GE(share, 0);
  ASSERT_LT(share, shares.count());
  ASSERT_LE(begin_of(tiles, shares.count(), share), tile) << tiles << " tiles, " << most;
  ASSERT_GT(begin_of(tiles, shares.count(), share + 1), tile) << tiles << " tiles, " << most;
}

TEST(KeyShares, are_those_of_the_definition) {
  for (const int most : {1, 2, 3, 7, 64, 120, 128, 131, 132, 512}) {
    for (int tiles = 1; tiles <= 2 * most + 3; ++tiles) {
      expect_equal_shares(tiles, most, 0, std::min(tiles, most));
      for (int tile = 0; tile < tiles; ++tile) expect_owner(tiles, most, tile);
    }
  }
}

// The largest numbers that a plan may have: products of shares and tiles exceed 32 bits.
TEST(KeyShares, hold_for_any_number_of_tiles) {
  std::mt19937 random(7);
  for (const int most : {1, 2, 127, 132, 512}) {
    for (int trial = 0; trial < 2000; ++trial) {
      const int bits = static_cast<int>(random() % 31);
      const int tiles = trial == 0 ? kMostTiles : 1 + static_cast<int>(random() >> (1 + bits));
      expect_equal_shares(tiles, most, 0, std::min(tiles, most));
      const KeyShares shares(tiles, divisor(most));
      const int share = static_cast<int>(random() % static_cast<unsigned>(shares.count()));
      for (const int tile :
           {0, tiles - 1, static_cast<int>(random() % static_cast<unsigned>(tiles)),
            shares.begin(share), shares.begin(share + 1) - 1}) {
        expect_owner(tiles, most, tile);
      }
    }
  }
}

}  // namespace decode_order_test
}  // namespace harpe::device
