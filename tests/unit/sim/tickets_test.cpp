#include "sim/tickets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace harpe {
namespace {

TEST(Tickets, tilings_are_read_from_variants) {
  EXPECT_EQ(read_tiling("tile 128x256 stages 4"), (Tiling{.rows = 128, .columns = 256}));
  EXPECT_EQ(read_tiling("tile 64x128 stages 6 cluster 2 ping-pong cut 3 behind tile 40"),
            (Tiling{.cluster = 2, .rows = 128, .columns = 128, .parts = 3, .whole = 40}));
  EXPECT_EQ(read_tiling("tile 64x64 stages 12 streams 20 by 4"), std::nullopt);
  EXPECT_EQ(read_tiling(""), std::nullopt);
  EXPECT_TRUE(is_streamed("tile 16x128 stages 12 streams 128"));
  EXPECT_FALSE(is_streamed("tile 128x256 stages 4"));
}

TEST(Tickets, parts_of_cut_tiles_are_added_up) {
  const Tiling tiling{.cluster = 2, .rows = 256, .columns = 128, .parts = 4, .whole = 66};
  Tickets tickets(tiling, 66);
  tickets.add(1, 256, 66 * 128);
  EXPECT_EQ(tickets.cut_bytes(), 0) << "all tiles are whole";
  tickets.add(1, 256, 128);
  EXPECT_EQ(tickets.cut_bytes(), 5 * 128 * 128 * 4.0) << "a block stores one part and reads four";
}

TEST(Tickets, shares_are_read_from_variants) {
  EXPECT_EQ(read_shares("keys in 128 shares"), (KeyShares{.shares = 128, .groups = 1}));
  EXPECT_EQ(read_shares("keys in 128 shares heads in 4 groups"),
            (KeyShares{.shares = 128, .groups = 4}));
  EXPECT_EQ(read_shares("tile 128x256 stages 4"), std::nullopt);
  EXPECT_EQ(read_shares(""), std::nullopt);
}

TEST(Tickets, one_wave_holds_all_panels) {
  Tickets tickets({.rows = 128, .columns = 256}, 132);
  for (int panel = 0; panel < 4; ++panel) tickets.add(1, 1000, 1024);  // 8 x 4 tiles
  ASSERT_EQ(tickets.panels(), 4U);
  EXPECT_EQ(tickets.steps(0, 0), 1);
  EXPECT_EQ(tickets.steps(0, 3), 1);
  EXPECT_EQ(tickets.steps(3, 3), 1);
}

// 160 tiles: 132 whole ones, then 28 in 4 parts each.
TEST(Tickets, parts_take_a_part_of_a_step) {
  Tickets tickets({.rows = 128, .columns = 256, .parts = 4, .whole = 132}, 132);
  for (int panel = 0; panel < 4; ++panel) tickets.add(1, 512, 2560);
  EXPECT_EQ(tickets.steps(0, 2), 1);
  EXPECT_EQ(tickets.steps(0, 3), 1.25);
  EXPECT_EQ(tickets.steps(3, 3), 1) << "behind its first tile comes no other";
}

// Eight panels of 16 rows are eight rows of tiles, which need two waves; 128 rows need one.
TEST(Tickets, panels_are_tiles_of_their_own) {
  Tickets few({.rows = 128, .columns = 128}, 132);
  for (int panel = 0; panel < 8; ++panel) few.add(1, 16, 4096);
  EXPECT_EQ(few.apart(), 2);
  Tickets whole({.rows = 128, .columns = 128}, 132);
  for (int panel = 0; panel < 8; ++panel) whole.add(1, 128, 4096);
  EXPECT_EQ(whole.apart(), 1);
}

// 192 rows leave a quarter of a cluster's 256-row tile empty; single blocks would not.
TEST(Tickets, panels_leave_clusters_half_empty) {
  Tickets tickets({.cluster = 2, .rows = 256, .columns = 128}, 66);
  tickets.add(1, 192, 5120);
  tickets.add(1, 192, 5120);
  EXPECT_EQ(tickets.steps(0, 1), 2);
  EXPECT_EQ(tickets.apart(), 2);
}

TEST(Tickets, read_less_of_operands_where_tiles_are_large) {
  EXPECT_DOUBLE_EQ(Tickets({.rows = 128, .columns = 128}, 132).reads(), 1.0 / 64);
  EXPECT_LT(Tickets({.cluster = 2, .rows = 256, .columns = 128}, 66).reads(), 1.0 / 64);
}

// The first tickets of panels predict the arrivals of panels and the tiles of each block.
TEST(Tickets, are_how_blocks_take_tiles) {
  std::mt19937_64 random(11);
  const auto draw = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  for (int trial = 0; trial < 300; ++trial) {
    const std::int64_t blocks = draw(1, 12);
    const std::int64_t panels = draw(1, 6);
    const std::int64_t whole = draw(0, 40);
    const std::int64_t parts = draw(1, 4);
    Tickets tickets({.rows = 1, .columns = 1, .parts = parts, .whole = whole}, blocks);
    struct Ticket {
      double arrives;
      double takes;
    };
    std::vector<Ticket> all;
    std::vector<double> arrivals;
    double now = 0;
    std::int64_t tiles = 0;
    for (std::int64_t panel = 0; panel < panels; ++panel) {
      now += static_cast<double>(draw(0, 3)) / 2;
      arrivals.push_back(now);
      const std::int64_t own = draw(1, 20);
      tickets.add(1, static_cast<double>(own), 1);
      for (std::int64_t i = 0; i < own; ++i, ++tiles) {
        const std::int64_t pieces = tiles < whole ? 1 : parts;
        all.insert(all.end(), static_cast<std::size_t>(pieces),
                   {now, 1 / static_cast<double>(pieces)});
      }
    }
    std::vector<double> free(static_cast<std::size_t>(blocks), 0);
    for (std::size_t i = 0; i < all.size(); ++i) {
      double& block = free[i % free.size()];
      block = std::max(block, all[i].arrives) + all[i].takes;
    }
    double told = 0;
    for (std::size_t panel = 0; panel < arrivals.size(); ++panel) {
      told = std::max(told, arrivals[panel] + tickets.steps(panel, arrivals.size() - 1));
    }
    EXPECT_NEAR(told, *std::ranges::max_element(free), 1e-9) << trial;
  }
}

}  // namespace
}  // namespace harpe
