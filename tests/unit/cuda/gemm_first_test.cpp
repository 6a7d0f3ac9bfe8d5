#include "exec/cuda/kernels/gemm/gemm_first.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <tuple>

#include "exec/cuda/kernels/gemm/device/gemm_order.h"

namespace harpe::cuda {
namespace {

using device::GemmArgs;
using device::GemmConfig;
using device::GemmFirst;

constexpr GemmConfig kConfig{
    .tile_m = 128, .tile_n = 256, .stages = 4, .cluster = 1, .cuts = true, .copies = true};

// One panel of `rows` rows with K chunks of the given numbers of K blocks, and 1,024 columns.
GemmArgs args_of(const GemmConfig& config, int rows, std::initializer_list<int> k_chunks) {
  GemmArgs args{};
  args.n = 1024;
  args.n_tiles = device::ceil_div(args.n, config.tile_n);
  args.panel_count = 1;
  args.group = device::divisor(8);
  args.band = device::divisor(8 * args.n_tiles);
  args.parts = device::divisor(1);
  args.joined = GemmArgs::kNeverJoined;
  args.b_is_fixed = 1;
  auto& panel = args.few_panels[0];
  panel.rows = rows;
  const int row_tiles = device::ceil_div(rows, config.tile_m * config.cluster);
  panel.last_band = device::divisor((row_tiles - 1) % 8 + 1);
  args.tiles = args.full_tiles = row_tiles * args.n_tiles;
  int at = 0;
  int k = 0;
  for (const int blocks : k_chunks) {
    auto& k_chunk = args.few_k_chunks[at++];
    k_chunk.k_begin = k * GemmConfig::kTileK;
    k_chunk.k_count = blocks * GemmConfig::kTileK;
    k_chunk.a_bytes = config.a_bytes();
    k_chunk.rest_bytes = config.a_bytes() / 2;
    k += blocks;
  }
  panel.k_blocks = panel.products = k;
  return args;
}

TEST(GemmFirst, each_block_loads_its_first_tile) {
  GemmArgs args = args_of(kConfig, 320, {16});
  place_first(kConfig, 12, args);
  // Three rows of tiles are one band, which is walked column by column.
  EXPECT_EQ(args.first[4].row, 1);
  EXPECT_EQ(args.first[4].column, 1);
  EXPECT_EQ(args.first[4].blocks, kConfig.stages);
  EXPECT_EQ(args.first[4].a_block, 0);
  EXPECT_EQ(args.first[4].box, GemmFirst::Whole);
  EXPECT_EQ(args.first[4].bytes, static_cast<std::uint32_t>(kConfig.stage_bytes()));
  EXPECT_EQ(args.first[4].b_is_ahead, 1);
  // The last 64 rows have a box of their own.
  EXPECT_EQ(args.first[5].box, GemmFirst::Rest);
  EXPECT_EQ(args.first[5].bytes,
            static_cast<std::uint32_t>(kConfig.b_bytes() + kConfig.a_bytes() / 2));
  EXPECT_EQ(args.first[12].blocks, 0) << "beyond the grid";
}

TEST(GemmFirst, blocks_of_a_cluster_have_rows_of_their_own) {
  GemmConfig config = kConfig;
  config.cluster = 2;
  GemmArgs args = args_of(config, 320, {16});
  place_first(config, 16, args);
  EXPECT_EQ(args.first[2].row, 2);
  EXPECT_EQ(args.first[2].box, GemmFirst::Rest);
  EXPECT_EQ(args.first[3].row, 3);
  EXPECT_EQ(args.first[3].box, GemmFirst::None);
  EXPECT_EQ(args.first[3].bytes, static_cast<std::uint32_t>(config.b_bytes()));
}

TEST(GemmFirst, parts_of_a_tile_begin_at_their_k_blocks) {
  GemmArgs args = args_of(kConfig, 128, {10, 20});
  args.full_tiles = 0;
  args.parts = device::divisor(3);
  place_first(kConfig, 12, args);
  EXPECT_EQ(args.first[2].column, 0);
  EXPECT_EQ(args.first[2].k_chunk, 1);
  EXPECT_EQ(args.first[2].a_block, 10);
  EXPECT_EQ(args.first[2].b_block, 20);
  EXPECT_EQ(args.first[3].column, 1);
  EXPECT_EQ(args.first[3].k_chunk, 0);
}

TEST(GemmFirst, no_more_blocks_than_the_k_chunk_has) {
  GemmArgs args = args_of(kConfig, 128, {2, 20});
  place_first(kConfig, 4, args);
  EXPECT_EQ(args.first[0].blocks, 2);
}

TEST(GemmFirst, the_second_panel_has_its_own_k_chunk) {
  GemmArgs args = args_of(kConfig, 128, {16});
  args.panel_count = 2;
  args.few_panels[1] = args.few_panels[0];
  args.few_panels[1].first_tile = 4;
  args.few_panels[1].first_k_chunk = 1;
  args.few_k_chunks[1] = args.few_k_chunks[0];
  args.few_k_chunks[1].has_b = 1;
  args.tiles = args.full_tiles = 8;
  place_first(kConfig, 8, args);
  EXPECT_EQ(args.first[5].k_chunk, 1);
  EXPECT_EQ(args.first[5].has_b, 1);
  EXPECT_EQ(args.first[5].row, 0);
  EXPECT_EQ(args.first[5].column, 1);
}

TEST(GemmFirst, awaited_operands_are_not_loaded) {
  GemmArgs args = args_of(kConfig, 128, {16});
  std::uint32_t flag = 0;
  args.few_k_chunks[0].ready.flag = &flag;
  place_first(kConfig, 4, args);
  EXPECT_EQ(args.first[0].blocks, 0);
}

TEST(GemmFirst, blocks_that_copy_load_nothing) {
  GemmArgs args = args_of(kConfig, 128, {16});
  args.copy_blocks = 2;
  place_first(kConfig, 6, args);
  EXPECT_EQ(args.first[1].blocks, 0);
  EXPECT_EQ(args.first[2].column, 0);
  EXPECT_EQ(args.first[2].blocks, kConfig.stages);
}

TEST(GemmFirst, weights_that_change_are_not_loaded_ahead) {
  GemmArgs args = args_of(kConfig, 128, {16});
  args.b_is_fixed = 0;
  place_first(kConfig, 4, args);
  EXPECT_EQ(args.first[0].b_is_ahead, 0);
}

TEST(GemmFirst, tables_in_memory_are_not_read) {
  GemmArgs args = args_of(kConfig, 128, {16});
  args.panels = args.few_panels;
  place_first(kConfig, 4, args);
  EXPECT_EQ(args.first[0].blocks, 0);
}

// With a thread block for each part of each tile, the first loads are those of all parts, once
// each.
TEST(GemmFirst, all_parts_of_all_tiles_are_loaded_once) {
  std::mt19937 random(7);
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  int checked = 0;
  for (int round = 0; round < 2000; ++round) {
    GemmConfig config = kConfig;
    config.cluster = draw(1, 2);
    config.tile_m = 32 * draw(2, 7);
    const int k_blocks = draw(4, 60);
    GemmArgs args = args_of(config, 1, {k_blocks});
    const int group = 4 * draw(1, 4);
    args.group = device::divisor(group);
    args.band = device::divisor(group * args.n_tiles);
    args.panel_count = draw(1, 3);
    args.tiles = 0;
    for (int i = 0; i < args.panel_count; ++i) {
      auto& panel = args.few_panels[i];
      panel = args.few_panels[0];
      panel.rows = draw(1, 700);
      panel.first_tile = args.tiles;
      panel.first_k_chunk = i;
      args.few_k_chunks[i] = args.few_k_chunks[0];
      const int rows = device::ceil_div(panel.rows, config.tile_m * config.cluster);
      panel.last_band = device::divisor((rows - 1) % group + 1);
      args.tiles += rows * args.n_tiles;
    }
    const int parts = draw(1, 4);
    args.parts = device::divisor(parts);
    args.full_tiles = parts == 1 ? args.tiles : draw(0, args.tiles);
    const int grid = config.cluster * device::unit_count(args.tiles, args.full_tiles, parts);
    if (grid > GemmArgs::kMostFirst) continue;
    ++checked;
    place_first(config, grid, args);
    std::set<std::tuple<int, int, int, int>> seen;
    for (int block = 0; block < grid; ++block) {
      const GemmFirst& first = args.first[block];
      const int rows = args.few_panels[first.k_chunk].rows;
      const int rest = rows - first.row * config.tile_m;
      ASSERT_GT(rest, -config.tile_m * config.cluster);
      ASSERT_LT(first.column, args.n_tiles);
      ASSERT_GE(first.blocks, 1);
      ASSERT_LE(first.a_block + first.blocks, k_blocks);
      EXPECT_EQ(first.box, rest <= 0              ? GemmFirst::None
                           : rest < config.tile_m ? GemmFirst::Rest
                                                  : GemmFirst::Whole);
      EXPECT_TRUE(seen.emplace(first.k_chunk, first.row, first.column, first.a_block).second)
          << "round " << round << ", block " << block;
    }
  }
  EXPECT_GT(checked, 500);
}

}  // namespace
}  // namespace harpe::cuda
