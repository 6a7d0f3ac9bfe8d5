#include "sim/variants.h"

#include <gtest/gtest.h>

namespace harpe {
namespace {

TEST(Variants, tilings_are_read_from_variants) {
  EXPECT_EQ(read_tiling("tile 128x256 stages 4"), (Tiling{.tile = {.rows = 128, .columns = 256}}));
  EXPECT_EQ(read_tiling("tile 64x128 stages 6 cluster 2 ping-pong cut 3 behind tile 40"),
            (Tiling{.tile = {.rows = 64, .columns = 128, .cluster = 2, .ping_pong = true},
                    .parts = 3,
                    .whole = 40}));
  EXPECT_EQ(read_tiling("tile 64x64 stages 12 streams 20 by 4"), std::nullopt);
  EXPECT_EQ(read_tiling(""), std::nullopt);
  EXPECT_EQ(read_streams("tile 16x128 stages 12 streams 128"),
            (Streams{.rows = 16, .columns = 128, .stages = 12, .count = 128}));
  const std::optional<Streams> pairs =
      read_streams("tile 128x128 stages 5 cluster 2 streams 20 by 2");
  EXPECT_EQ(
      pairs,
      (Streams{.rows = 128, .columns = 128, .stages = 5, .cluster = 2, .count = 20, .each = 2}));
  EXPECT_EQ(pairs->pairs(), 40);
  EXPECT_EQ(pairs->blocks(), 80);
  EXPECT_EQ(read_streams("tile 128x256 stages 4"), std::nullopt);
}

TEST(Variants, shares_are_read_from_variants) {
  EXPECT_EQ(read_shares("keys in 128 shares"), (KeyShares{.shares = 128, .groups = 1}));
  EXPECT_EQ(read_shares("keys in 128 shares heads in 4 groups"),
            (KeyShares{.shares = 128, .groups = 4}));
  EXPECT_EQ(read_shares("tile 128x256 stages 4"), std::nullopt);
  EXPECT_EQ(read_shares(""), std::nullopt);
}

}  // namespace
}  // namespace harpe
