#include "exec/cuda/kernels/gemm/few_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "exec/cuda/kernels/gemm/device/few_rows_order.h"
#include "exec/cuda/kernels/gemm/gemm_choice_text.h"
#include "exec/cuda/kernels/gemm/gemm_variants.h"

namespace harpe::cuda {
namespace few_rows_test {

using device::divisor;
using device::StreamWalk;

constexpr int kMultiprocessors = 132;

struct Cut {
  int tiles;
  int blocks;  // per tile
  int streams;
};

constexpr std::array kCuts = {Cut{1, 1, 1},      Cut{1, 7, 7},       Cut{1, 128, 132 / 4},
                              Cut{64, 64, 128},  Cut{64, 64, 132},   Cut{40, 128, 132},
                              Cut{10, 128, 132}, Cut{224, 128, 112}, Cut{225, 1, 132},
                              Cut{3, 5, 4},      Cut{2, 100, 131}};

StreamWalk walk_of(const Cut& cut, int stream, int share = 0, int shares = 1) {
  return {cut.tiles, divisor(cut.blocks), stream, divisor(cut.streams), share, divisor(shares)};
}

TEST(Divisor, divides_as_a_division_does) {
  constexpr int kMost = std::numeric_limits<int>::max();
  for (const int by : {1, 2, 3, 7, 8, 27, 132, 1000, 65'537, 1 << 30, kMost - 1, kMost}) {
    const device::Divisor divides = divisor(by);
    for (const int near : {2, by, kMost / 2, kMost - 2}) {
      for (int off = -2; off <= std::min(kMost - near, 2); ++off) {
        const int value = std::max(near + off, 0);
        EXPECT_EQ(value / divides, value / by) << value << " / " << by;
        EXPECT_EQ(value % divides, value % by) << value << " % " << by;
      }
    }
  }
}

TEST(StreamWalk, has_every_block_once_and_equal_shares) {
  for (const Cut& cut : kCuts) {
    const int all = cut.tiles * cut.blocks;
    std::vector<int> times(static_cast<std::size_t>(all));
    for (int stream = 0; stream < cut.streams; ++stream) {
      int length = 0;
      for (StreamWalk walk = walk_of(cut, stream); walk.valid(); walk.next()) {
        ASSERT_LT(walk.first(), walk.last());
        for (int block = walk.first(); block < walk.last(); ++block, ++length) {
          ++times[static_cast<std::size_t>(walk.tile() * cut.blocks + block)];
        }
      }
      EXPECT_GE(length, all / cut.streams);
      EXPECT_LE(length, all / cut.streams + 1);
    }
    EXPECT_TRUE(std::ranges::all_of(times, [](int count) { return count == 1; }));
  }
}

// A stream hands on only its first part, and waits only for lower streams.
TEST(StreamWalk, leaves_at_most_one_part_which_it_computes_first) {
  for (const Cut& cut : kCuts) {
    for (int stream = 0; stream < cut.streams; ++stream) {
      bool is_first = true;
      for (StreamWalk walk = walk_of(cut, stream); walk.valid(); walk.next()) {
        EXPECT_TRUE(walk.is_owner() || is_first);
        EXPECT_LE(walk.first_stream(), stream);
        is_first = false;
      }
    }
  }
}

// Consecutive streams, up to the owner, each have one part of the tile, in the order of K.
TEST(StreamWalk, parts_of_a_tile_are_those_of_consecutive_streams) {
  for (const Cut& cut : kCuts) {
    for (int tile = 0; tile < cut.tiles; ++tile) {
      int block = 0;
      for (int stream = 0; stream < cut.streams && block < cut.blocks; ++stream) {
        StreamWalk walk = walk_of(cut, stream);
        while (walk.valid() && walk.tile() != tile) walk.next();
        if (!walk.valid()) continue;
        EXPECT_EQ(walk.first(), block);
        EXPECT_EQ(walk.first() == 0, walk.first_stream() == stream);
        EXPECT_EQ(walk.last() == cut.blocks, walk.is_owner());
        block = walk.last();
      }
      EXPECT_EQ(block, cut.blocks);
    }
  }
}

// The blocks of a stream divide its parts in the order of K.
TEST(StreamWalk, shares_of_a_part_follow_each_other) {
  for (const Cut& cut : kCuts) {
    for (const int shares : {1, 2, 3, 4, 5, 8}) {
      for (int stream = 0; stream < cut.streams; ++stream) {
        StreamWalk whole = walk_of(cut, stream);
        for (; whole.valid(); whole.next()) {
          int block = whole.first();
          for (int share = 0; share < shares; ++share) {
            StreamWalk walk = walk_of(cut, stream, share, shares);
            while (walk.tile() != whole.tile()) walk.next();
            EXPECT_EQ(walk.own_first(), block);
            EXPECT_LE(walk.own_last() - block, (whole.last() - whole.first()) / shares + 1);
            block = walk.own_last();
          }
          EXPECT_EQ(block, whole.last());
        }
      }
    }
  }
}

GemmSpec product(const std::vector<std::int64_t>& panels, std::int64_t n, std::int64_t k) {
  GemmSpec spec{.n = n, .k = k, .b = 4096, .b_stride = n};
  for (const std::int64_t rows : panels) {
    spec.panels.push_back({.rows = rows,
                           .k_chunks = {{.a = 4096, .stride = k, .k_begin = 0, .k_count = k}},
                           .c = 4096,
                           .c_stride = n});
  }
  return spec;
}

bool takes_few_rows(const GemmSpec& spec) {
  EXPECT_TRUE(check(spec, kMultiprocessors).ok());
  return choose_gemm(spec, kMultiprocessors).config.few_rows;
}

TEST(FewRows, are_up_to_32_of_one_panel) {
  EXPECT_TRUE(takes_few_rows(product({1}, 8192, 8192)));
  EXPECT_TRUE(takes_few_rows(product({32}, 8192, 8192)));
  EXPECT_TRUE(takes_few_rows(product({32}, 8192, 1088)));
}

// Tiles take less time at their start and end, and a stream hardly begins.
TEST(FewRows, of_short_products_are_left_to_tiles) {
  EXPECT_FALSE(takes_few_rows(product({16}, 8192, 1024)));
  EXPECT_FALSE(takes_few_rows(product({64}, 8192, 1024)));
  EXPECT_FALSE(takes_few_rows(product({224}, 8192, 1024)));
}

// A stream with a further tile waits until the sums before have left.
TEST(FewRows, of_several_tiles_a_stream_are_left_to_tiles_if_sums_are_awaited) {
  GemmSpec spec = product({72, 72}, 20480, 2048);
  spec.b_is_fixed = true;
  EXPECT_TRUE(takes_few_rows(spec));
  spec.panels.front().fused_store = 0;
  spec.fused_stores.resize(1);
  EXPECT_FALSE(takes_few_rows(spec));
  spec.n = 5120;
  for (cuda::GemmPanelSpec& panel : spec.panels) panel.c_stride = spec.n;
  EXPECT_TRUE(takes_few_rows(spec)) << "one tile a stream";
}

// One panel may have more rows if streams are long enough to make up for joining tiles.
TEST(FewRows, of_more_than_32_in_one_panel_are_what_the_estimates_say) {
  EXPECT_TRUE(takes_few_rows(product({64}, 5120, 8192)));
  EXPECT_TRUE(takes_few_rows(product({96}, 8192, 14336)));
  EXPECT_TRUE(takes_few_rows(product({80}, 5120, 12800)));
  EXPECT_FALSE(takes_few_rows(product({128}, 5120, 3200)));
  EXPECT_FALSE(takes_few_rows(product({128}, 6144, 2560)));
  EXPECT_FALSE(takes_few_rows(product({257}, 8192, 14336)));
}

GemmSpec few_columns(std::int64_t rows) {
  GemmSpec spec = product({rows}, 1280, 4096);
  spec.b_is_fixed = true;
  return spec;
}

// A pair of blocks shares more than 128 rows, where columns are too few for tiles.
TEST(FewRows, of_more_than_128_are_of_pairs_of_blocks) {
  for (const std::int64_t rows : {129, 192, 193, 256}) {
    const GemmSpec spec = few_columns(rows);
    const GemmChoice choice = choose_gemm(spec, kMultiprocessors);
    ASSERT_TRUE(choice.config.few_rows) << rows;
    EXPECT_EQ(choice.config.cluster, 2);
    EXPECT_EQ(choice.config.tile_m, rows <= 192 ? 96 : 128);
    EXPECT_LE(choice.parts * cluster_of(choice), kMultiprocessors);
    const std::string text = print(choice);
    EXPECT_NE(text.find(" cluster 2 streams "), std::string::npos) << text;
    const auto found = find_gemm_choice(spec, text);
    ASSERT_TRUE(found);
    EXPECT_EQ(print(*found), text);
  }
  EXPECT_EQ(choose_gemm(few_columns(128), kMultiprocessors).config.cluster, 1);
}

// `gemm_rs` of twice as many rows: measured on two H200 with either kernel. Pairs are faster where
// K is long.
TEST(FewRows, of_more_than_128_are_left_to_tiles_where_sums_are_short) {
  const auto takes_pairs = [](std::int64_t rows, std::int64_t n, std::int64_t k) {
    GemmSpec spec = product({rows, rows}, n, k);
    spec.b_is_fixed = true;
    spec.panels.front().fused_store = 0;
    spec.fused_stores.resize(1);
    return takes_few_rows(spec);
  };
  EXPECT_FALSE(takes_pairs(88, 4096, 2048)) << "24.6 us, tiles 17.6";
  EXPECT_FALSE(takes_pairs(104, 5376, 2688)) << "29.8 us, tiles 24.3";
  EXPECT_FALSE(takes_pairs(104, 4096, 7168)) << "41.0 us, tiles 34.3";
  EXPECT_TRUE(takes_pairs(128, 5120, 12800)) << "70.5 us, tiles 74.0";
  EXPECT_TRUE(takes_pairs(104, 8192, 4096)) << "40.0 us, tiles 42.2";
}

TEST(FewRows, are_shared_out_evenly_by_a_pair) {
  const device::GemmConfig pair{.tile_m = 96, .tile_n = 128, .cluster = 2, .few_rows = true};
  EXPECT_EQ(rows_each(product({192}, 1024, 1024), pair), 96);
  EXPECT_EQ(rows_each(product({65, 65}, 1024, 1024), pair), 72);
  EXPECT_EQ(rows_each(product({136}, 1024, 1024), pair), 72);
  EXPECT_EQ(rows_each(product({1}, 1024, 1024), pair), 8);
}

TEST(FewRows, are_up_to_256_of_several_panels_each_rounded_up_to_eight) {
  EXPECT_TRUE(takes_few_rows(product({64, 64}, 8192, 8192)));
  EXPECT_TRUE(takes_few_rows(product({128, 128}, 5120, 8192)));
  EXPECT_FALSE(takes_few_rows(product({128, 129}, 5120, 8192)));
  EXPECT_TRUE(takes_few_rows(product(std::vector<std::int64_t>(16, 1), 8192, 8192)));
  EXPECT_FALSE(takes_few_rows(product(std::vector<std::int64_t>(17, 1), 8192, 8192)));
}

TEST(FewRows, have_the_smallest_tile_that_holds_them) {
  for (const std::int64_t rows : {1, 8, 9, 16, 17, 33, 64, 65, 120}) {
    const GemmSpec spec = product({rows, 1}, 4096, 4096);
    const int tile = choose_gemm(spec, kMultiprocessors).config.tile_m;
    EXPECT_GE(tile, rows);
    EXPECT_LT(tile, 2 * rows_in_tile(spec)) << rows;
  }
}

TEST(FewRows, need_whole_rows_of_c_and_k_chunks_in_the_order_of_k) {
  GemmSpec odd = product({4}, 1001, 1024);
  odd.b_stride = 1008;
  EXPECT_FALSE(takes_few_rows(odd));
  GemmSpec k_chunks = product({4}, 1024, 1024);
  k_chunks.panels.front().k_chunks = {{.a = 4096, .stride = 1024, .k_begin = 512, .k_count = 512},
                                      {.a = 4096, .stride = 1024, .k_begin = 0, .k_count = 512}};
  EXPECT_FALSE(takes_few_rows(k_chunks));
  std::ranges::reverse(k_chunks.panels.front().k_chunks);
  EXPECT_TRUE(takes_few_rows(k_chunks));
  GemmSpec added = product({4}, 1024, 1024);
  added.out = device::Element::F32;
  added.add = true;
  EXPECT_FALSE(takes_few_rows(added));
}

// No variant for few rows applies maps; other variants do.
TEST(FewRows, leave_products_with_maps_to_the_other_kernel) {
  GemmSpec spec = product({4}, 1024, 1024);
  ASSERT_TRUE(takes_few_rows(spec));
  spec.maps = {{.leaf = Leaf::Add, .is_row = true}};
  spec.panels.front().map_operands = {{.address = 4096, .stride = 0}};
  EXPECT_FALSE(takes_few_rows(spec));
  EXPECT_TRUE(std::ranges::none_of(gemm_configs(spec), &device::GemmConfig::few_rows));
  EXPECT_TRUE(choose_gemm(spec, kMultiprocessors).config.has_maps());
  for (device::GemmConfig config : shipped_gemm_configs()) {
    if (!config.few_rows) continue;
    EXPECT_TRUE(ships(config));
    config.maps[0] = device::GemmMap::AddRow;
    EXPECT_FALSE(ships(config));
  }
}

// The kernel for few rows streams weights without checking flags.
TEST(FewRows, leave_weights_that_arrive_to_the_other_kernel) {
  GemmSpec spec = product({4}, 1024, 1024);
  std::uint32_t flag = 0;
  spec.panels.front().k_chunks.front().ready.flag = &flag;
  EXPECT_FALSE(takes_few_rows(spec));
  EXPECT_TRUE(check(spec, kMultiprocessors).ok());
  spec.b_is_fixed = true;
  EXPECT_TRUE(takes_few_rows(spec));
}

TEST(FewRows, load_weights_as_fast_as_memory_gives_them_while_rows_are_awaited) {
  constexpr int kBlocks = 120;
  GemmSpec spec = product({4, 4}, 5120, 5120);
  const device::GemmConfig config = choose_gemm(spec, kMultiprocessors).config;
  EXPECT_EQ(clocks_between_loads(spec, config, kBlocks), 0);
  std::uint32_t flag = 0;
  spec.panels.back().k_chunks.front().ready.flag = &flag;
  const int apart = clocks_between_loads(spec, config, kBlocks);
  ASSERT_GT(apart, 0);
  const double bytes = kBlocks * config.slot_stages() * config.b_bytes();
  EXPECT_NEAR(bytes / apart / streamed_from_memory(kBlocks), 0.9, 0.01);
  device::GemmConfig pairs = config;
  pairs.cluster = 2;  // each block loads half a stage
  EXPECT_NEAR(clocks_between_loads(spec, pairs, kBlocks), apart / 2.0, 1);
}

TEST(FewRows, take_addends_whichever_way_b_lies) {
  GemmSpec spec = product({16, 16}, 1024, 1024);
  spec.layout = device::GemmLayout::KMajor;
  spec.panels.back().addends = {{.address = 4096, .stride = 1024}};
  EXPECT_TRUE(takes_few_rows(spec));
  EXPECT_EQ(choose_gemm(spec, kMultiprocessors).config.tile_m, 32);
}

// Rows slow down the reading of weights, most in tiles of 64 columns. Timed on an H200: 127 us in
// whole tiles of 128 columns, 131 where they are cut, 136 in tiles of 64.
TEST(FewRows, of_many_weights_have_whole_tiles_of_128_columns) {
  const GemmChoice choice = choose_gemm(product({48, 48}, 28672, 8192), kMultiprocessors);
  ASSERT_TRUE(choice.config.few_rows);
  EXPECT_EQ(choice.config.tile_n, 128);
  EXPECT_EQ(choice.parts, 112);
  EXPECT_EQ(choice.stream_blocks, 1);
}

TEST(FewRows, stream_over_many_blocks) {
  for (const std::int64_t n : {1280, 4096, 5120, 8192, 14336, 28672}) {
    for (const std::int64_t rows : {1, 16, 64}) {
      const GemmChoice choice = choose_gemm(product({rows}, n, 4096), kMultiprocessors);
      if (!choice.config.few_rows) continue;
      const int blocks = choice.parts * choice.stream_blocks;
      EXPECT_LE(blocks, kMultiprocessors);
      EXPECT_GT(blocks, kMultiprocessors * 2 / 5) << n << " " << rows;
    }
  }
  const GemmChoice tiny = choose_gemm(product({1}, 64, 64), kMultiprocessors);
  EXPECT_EQ(tiny.parts, 1);
}

TEST(FewRows, are_printed_with_their_streams_and_found_again) {
  const GemmSpec spec = product({50, 50}, 8192, 4096);
  const GemmChoice choice = choose_gemm(spec, kMultiprocessors);
  const std::string text = print(choice);
  EXPECT_NE(text.find(" streams " + std::to_string(choice.parts)), std::string::npos) << text;
  const auto found = find_gemm_choice(spec, text);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->config.few_rows);
  EXPECT_EQ(print(*found), text);
  const std::string tile = text.substr(0, text.find(" streams "));
  EXPECT_FALSE(find_gemm_choice(spec, tile + " streams 0"));
  EXPECT_FALSE(find_gemm_choice(spec, tile + " streams 100000"));
  // The same tile without streams belongs to another kernel.
  const auto other = find_gemm_choice(spec, "tile 128x128 stages 6");
  EXPECT_TRUE(!other || !other->config.few_rows);
}

TEST(FewRows, streams_of_several_blocks_are_printed_and_found_again) {
  GemmSpec spec = product({50, 50}, 8192, 4096);
  GemmChoice choice = choose_gemm(spec, kMultiprocessors);
  choice.parts = 16;
  choice.stream_blocks = 4;
  const std::string text = print(choice);
  EXPECT_TRUE(text.ends_with(" streams 16 by 4")) << text;
  const auto found = find_gemm_choice(spec, text);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->stream_blocks, 4);
  EXPECT_EQ(print(*found), text);
  const std::string streams = text.substr(0, text.find(" by "));
  for (const char* blocks : {" by 0", " by 7", " by 16", " by", " by 4x"}) {
    EXPECT_FALSE(find_gemm_choice(spec, streams + blocks)) << blocks;
  }
  spec.copy_blocks = 2;  // no clusters of four
  EXPECT_FALSE(find_gemm_choice(spec, text));
  EXPECT_TRUE(find_gemm_choice(spec, streams + " by 2"));
}

// The data from the other blocks of a stream must fit into a consumer's inbox.
TEST(FewRows, streams_have_as_many_blocks_as_an_inbox_holds) {
  const GemmSpec spec = product({60}, 8192, 4096);
  for (const device::GemmConfig& config : gemm_tiles()) {
    if (!config.few_rows) continue;
    for (int blocks = 1; blocks <= device::kMostStreamBlocks; ++blocks) {
      const int each = (config.tile_m / 8 + blocks - 1) / blocks;
      const int sent = (blocks - 1) * each * 8 * 64 * 4;  // f32
      EXPECT_TRUE(!can_share_streams(spec, config, blocks) || sent <= config.staged_bytes());
      EXPECT_TRUE(!can_share_streams(spec, config, blocks) || blocks * config.cluster <= 8);
    }
    EXPECT_FALSE(can_share_streams(spec, config, 0));
    EXPECT_FALSE(can_share_streams(spec, config, device::kMostStreamBlocks + 1));
  }
}

// Clusters of three or more blocks do not fill the GPU; all chosen clusters must run at once.
TEST(FewRows, streams_of_several_blocks_run_at_once) {
  for (const std::int64_t n : {768, 1280, 2560, 4096}) {
    for (const std::int64_t rows : {1, 16, 64, 128, 256}) {
      const GemmChoice choice = choose_gemm(product({rows}, n, 8192), kMultiprocessors);
      if (!choice.config.few_rows) continue;
      const int blocks = choice.parts * cluster_of(choice);
      EXPECT_LE(blocks, kMultiprocessors);
      if (cluster_of(choice) > 2) {
        EXPECT_LE(blocks, kMultiprocessors * 7 / 8);
      }
      EXPECT_LE(choice.parts, clusters_of(kMultiprocessors, cluster_of(choice)));
    }
  }
}

TEST(FewRows, a_counter_grows_once_for_every_64_columns_and_block) {
  const device::GemmConfig narrow{.tile_m = 16, .tile_n = 64, .cluster = 1, .few_rows = true};
  const device::GemmConfig wide{.tile_m = 16, .tile_n = 128, .cluster = 1, .few_rows = true};
  EXPECT_EQ(arrivals({.rows = 9}, 8192, {.config = narrow}), 128U);
  EXPECT_EQ(arrivals({.rows = 9}, 8192, {.config = wide}), 128U);
  EXPECT_EQ(arrivals({.rows = 9}, 72, {.config = wide}), 2U);
  EXPECT_EQ(arrivals({.rows = 9}, 8192, {.config = wide, .stream_blocks = 4}), 512U);
  const device::GemmConfig pair{.tile_m = 128, .tile_n = 128, .cluster = 2, .few_rows = true};
  EXPECT_EQ(arrivals({.rows = 200}, 8192, {.config = pair}), 256U);
  EXPECT_EQ(arrivals({.rows = 200}, 8192, {.config = pair, .stream_blocks = 2}), 512U);
}

}  // namespace few_rows_test
}  // namespace harpe::cuda
