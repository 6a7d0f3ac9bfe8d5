#include "offers/gemm_tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace harpe {
namespace {

TEST(Tickets, one_wave_holds_all_panels) {
  Tickets tickets({.tile = {.rows = 128, .columns = 256}}, 132);
  for (int panel = 0; panel < 4; ++panel) tickets.add(1, 1000, 1024);  // 8 x 4 tiles
  ASSERT_EQ(tickets.panels(), 4U);
  EXPECT_EQ(tickets.steps(0, 0), 1);
  EXPECT_EQ(tickets.steps(0, 3), 1);
  EXPECT_EQ(tickets.steps(3, 3), 1);
}

// 160 tiles: 132 whole ones, then 28 in 4 parts each.
TEST(Tickets, parts_take_a_part_of_a_step) {
  Tickets tickets({.tile = {.rows = 128, .columns = 256}, .parts = 4, .whole = 132}, 132);
  for (int panel = 0; panel < 4; ++panel) tickets.add(1, 512, 2560);
  EXPECT_EQ(tickets.steps(0, 2), 1);
  EXPECT_EQ(tickets.steps(0, 3), 1.25);
  EXPECT_EQ(tickets.steps(3, 3), 1) << "behind its first tile comes no other";
}

// 192 rows leave a quarter of a cluster's 256-row tile empty.
TEST(Tickets, panels_are_tiles_of_their_own) {
  Tickets tickets({.tile = {.rows = 128, .columns = 128, .cluster = 2}}, 66);
  tickets.add(1, 192, 5120);
  tickets.add(1, 192, 5120);
  EXPECT_EQ(tickets.steps(0, 1), 2) << "2 x 40 tiles";
}

// Times of kernels by themselves, on an H200 whose clock is 1.5 GHz.
TEST(Tickets, clocks_are_those_of_measured_kernels) {
  const auto us = [](const Tiling& tiling, double rows, double columns, std::int64_t k) {
    Tickets tickets(tiling, 132 / tiling.tile.cluster);
    tickets.add(1, rows, columns);
    return tickets.clocks(k / kGemmStage) / 1500;
  };
  EXPECT_NEAR(us({.tile = {.rows = 128, .columns = 256}}, 768, 5120, 5120), 61, 3);
  EXPECT_NEAR(us({.tile = {.rows = 128, .columns = 192, .cluster = 2}}, 2048, 3072, 4096), 72, 4);
}

TEST(Tickets, cutting_tiles_costs_their_sums) {
  const GemmTile tile{.rows = 128, .columns = 128};
  Tickets whole({.tile = tile}, 132);
  Tickets cut({.tile = tile, .parts = 2, .whole = 0}, 132);
  for (Tickets* const tickets : {&whole, &cut}) tickets->add(1, 1024, 1024);  // 64 tiles
  const double gain = whole.clocks(128) - cut.clocks(128);
  EXPECT_GT(gain, 0) << "of long tiles";
  EXPECT_LT(gain, 64 * stage_clocks(tile, cached_bytes_per_clock(64))) << "half of the stages";
  EXPECT_LT(whole.clocks(8), cut.clocks(8)) << "short tiles";
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
    const std::int64_t copiers = draw(0, 4);
    Tiling tiling{.tile = {.rows = 1, .columns = 1}, .parts = parts, .whole = whole};
    if (copiers > 0) tiling.joined = blocks * draw(1, 3);
    Tickets tickets(tiling, blocks, copiers);
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
    // Those that copy come first.
    std::vector<double> free(static_cast<std::size_t>(copiers + blocks), 0);
    for (std::int64_t i = 0; i < std::ssize(all); ++i) {
      const bool is_joined = tiling.joined && i >= *tiling.joined;
      const std::int64_t at =
          is_joined ? (i - *tiling.joined) % (copiers + blocks) : copiers + i % blocks;
      double& block = free[static_cast<std::size_t>(at)];
      const Ticket& ticket = all[static_cast<std::size_t>(i)];
      block = std::max(block, ticket.arrives) + ticket.takes;
    }
    double told = tickets.steps_of_copiers();
    for (std::size_t panel = 0; panel < arrivals.size(); ++panel) {
      told = std::max(told, arrivals[panel] + tickets.steps(panel, arrivals.size() - 1));
    }
    EXPECT_NEAR(told, *std::ranges::max_element(free), 1e-9) << trial;
  }
}

}  // namespace
}  // namespace harpe
