#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "exec/cuda/kernels/gemm/device/gemm_order.h"
#include "exec/cuda/kernels/gemm/gemm.h"
#include "exec/cuda/kernels/gemm/gemm_variants.h"
#include "tests/unit/cuda/gemm_specs.h"

namespace harpe::cuda {
namespace gemm_test {

int tiles_of(const GemmSpec& spec, const device::GemmConfig& config) {
  int tiles = 0;
  for (const GemmPanelSpec& panel : spec.panels) {
    tiles += device::ceil_div(static_cast<int>(panel.rows), config.tile_m * config.cluster) *
             device::ceil_div(static_cast<int>(spec.n), config.tile_n);
  }
  return tiles;
}

TEST(GemmChoice, is_shipped_for_every_type_layout_and_store) {
  std::set<std::string> shipped;
  for (const KernelVariant& variant : gemm_variants()) shipped.insert(variant.name);
  for (const auto in : {device::Element::BF16, device::Element::F16}) {
    for (const auto out : {in, device::Element::F32}) {
      for (const auto layout : {device::GemmLayout::NMajor, device::GemmLayout::KMajor}) {
        for (const bool add : {false, true}) {
          for (const std::int64_t n : {64, 1000, 1001, 8192}) {
            if (add && (out != device::Element::F32 || n == 1001)) continue;
            GemmSpec spec = product(512, n, 1024);
            spec.in = in;
            spec.out = out;
            spec.layout = layout;
            spec.add = add;
            const KernelVariant chosen = gemm_variant(choose_gemm(spec, kMultiprocessors).config);
            EXPECT_TRUE(shipped.contains(chosen.name)) << chosen.name;
          }
        }
      }
    }
  }
}

TEST(GemmChoice, names_stand_for_one_source_each) {
  std::set<std::string> names;
  for (const KernelVariant& variant : gemm_variants()) names.insert(variant.name);
  EXPECT_EQ(names.size(), gemm_variants().size());
}

// `slabs` slabs for each of eight experts.
GemmSpec groups(std::int64_t slabs, std::int64_t rows, std::int64_t likely_rows) {
  static std::int32_t used = 0;
  GemmSpec spec = product(rows, 1536, 4096);
  spec.b_rows = 8 * spec.k;
  GemmPanelSpec panel = spec.panels.front();
  panel.used = {.rows = &used, .result = nullptr, .before = 0, .capacity = rows};
  panel.likely_rows = likely_rows;
  spec.panels.clear();
  for (std::int64_t expert = 0; expert < 8; ++expert) {
    panel.b_first = expert * spec.k;
    for (std::int64_t slab = 0; slab < slabs; ++slab) spec.panels.push_back(panel);
  }
  return spec;
}

TEST(GemmChoice, groups_take_the_tile_that_reads_weights_least_often) {
  const auto tile_of = [](const GemmSpec& spec) {
    EXPECT_TRUE(check(spec, kMultiprocessors).ok());
    const GemmChoice choice = choose_gemm(spec, kMultiprocessors);
    EXPECT_TRUE(choice.config.groups);
    // The choice covers all possible rows: it cuts no tile and needs no memory for cut tiles.
    EXPECT_EQ(choice.full_tiles, tiles_of(spec, choice.config));
    EXPECT_EQ(choice.parts, 1);
    return choice.config.tile_m;
  };
  EXPECT_EQ(tile_of(groups(2, 128, 8)), 64);
  EXPECT_EQ(tile_of(groups(2, 1024, 32)), 128);
  EXPECT_EQ(tile_of(groups(8, 4096, 256)), 128);
}

TEST(GemmChoice, groups_are_plain) {
  GemmSpec added = groups(2, 128, 8);
  added.add = true;
  EXPECT_FALSE(check(added, kMultiprocessors).ok());
  GemmSpec awaited = groups(2, 128, 8);
  std::uint32_t flag = 0;
  awaited.panels[3].k_chunks.front().ready.flag = &flag;
  EXPECT_FALSE(check(awaited, kMultiprocessors).ok());
  EXPECT_FALSE(check(groups(65, 128, 8), kMultiprocessors).ok());
}

TEST(GemmChoice, few_tiles_are_cut_until_the_gpu_is_full) {
  const GemmSpec spec = product(512, 1280, 8192);
  const GemmChoice choice = choose_gemm(spec, kMultiprocessors);
  const int tiles = tiles_of(spec, choice.config);
  const int units = device::unit_count(tiles, choice.full_tiles, choice.parts);
  EXPECT_GT(choice.parts, 1);
  EXPECT_GE(units * choice.config.cluster, kMultiprocessors * 3 / 4);
}

TEST(GemmChoice, a_wave_that_is_nearly_full_is_not_cut) {
  const GemmSpec spec = product(2048, 8192, 4096);
  const GemmChoice choice = choose_gemm(spec, kMultiprocessors);
  const int clusters = kMultiprocessors / choice.config.cluster;
  EXPECT_GT(tiles_of(spec, choice.config) % clusters, clusters * 3 / 4);
  EXPECT_EQ(choice.parts, 1);
}

TEST(GemmChoice, many_tiles_are_cut_only_behind_the_last_whole_wave) {
  const GemmSpec spec = product(8192, 8192, 8192);
  const GemmChoice choice = choose_gemm(spec, kMultiprocessors);
  const int clusters = kMultiprocessors / choice.config.cluster;
  EXPECT_TRUE(choice.parts == 1 || choice.full_tiles % clusters == 0);
  EXPECT_GE(choice.config.tile_m * choice.config.tile_n * choice.config.cluster, 128 * 128 * 2);
}

// 1,024 x 5,120 is 64 pairs of 128 x 320 tiles; a GPU runs 66 pairs at once.
TEST(GemmChoice, a_wide_tile_fills_the_wave_that_others_do_not) {
  const GemmChoice choice = choose_gemm(product(1024, 5120, 4096), kMultiprocessors);
  EXPECT_EQ(choice.config.tile_n, 320);
  EXPECT_EQ(tiles_of(product(1024, 5120, 4096), choice.config), 64);
  EXPECT_EQ(choice.parts, 1);
}

// 384 x 8,192 is 128 tiles of 192 x 128. Tiles of 128 x 256 are 96, each of a third more work.
TEST(GemmChoice, a_high_tile_fills_the_wave_that_others_do_not) {
  const GemmChoice choice = choose_gemm(product(384, 8192, 14336), kMultiprocessors);
  EXPECT_EQ(choice.config.tile_m, 192);
  EXPECT_EQ(tiles_of(product(384, 8192, 14336), choice.config), 128);
}

// 5,120 columns are 32 tiles of 160, and 7,168 are 32 of 224: with 512 rows 64 pairs, one wave.
TEST(GemmChoice, tiles_of_160_or_224_columns_fill_the_wave_that_others_do_not) {
  const GemmChoice narrow = choose_gemm(product(512, 5120, 8192), kMultiprocessors);
  EXPECT_EQ(narrow.config.tile_n, 160);
  EXPECT_EQ(tiles_of(product(512, 5120, 8192), narrow.config), 64);
  const GemmChoice wide = choose_gemm(product(512, 7168, 8192), kMultiprocessors);
  EXPECT_EQ(wide.config.tile_n, 224);
  EXPECT_EQ(tiles_of(product(512, 7168, 8192), wide.config), 64);
}

// Two panels, whose sums leave.
GemmSpec two_leaving(std::int64_t rows, std::int64_t n, std::int64_t k) {
  GemmSpec spec = product(2 * rows, n, k);
  spec.panels[0].rows = rows;
  spec.panels[0].done = 4096;
  spec.panels.push_back(spec.panels[0]);
  return spec;
}

// 320 rows are two tiles of 160 rows, but three of 128 or of 64 rows in pairs.
TEST(GemmChoice, panels_that_are_no_multiples_of_128_rows_take_tiles_that_fit_them) {
  EXPECT_EQ(choose_gemm(product(320, 8192, 4096), kMultiprocessors).config.tile_m, 160);
  const GemmSpec spec = two_leaving(320, 4096, 7168);
  const GemmChoice leaving = choose_gemm(spec, kMultiprocessors);
  EXPECT_EQ(leaving.config.tile_m, 160);
  EXPECT_TRUE(leaving.config.swapped);
  const auto tiles = static_cast<std::uint32_t>(2 * 4096 / leaving.config.tile_n);
  const auto each = static_cast<std::uint32_t>(leaving.config.arrivals_per_tile());
  EXPECT_EQ(arrivals(spec.panels[0], spec.n, leaving), tiles * each);
}

// `gemm_rs` of twice as many rows at two ranks: measured on two H200.
TEST(GemmChoice, panels_of_odd_row_counts_take_swapped_tiles_that_fit_them) {
  const auto rows_of_tile = [](std::int64_t rows, std::int64_t n, std::int64_t k) {
    const GemmChoice choice = choose_gemm(two_leaving(rows, n, k), kMultiprocessors);
    EXPECT_TRUE(choice.config.swapped);
    return choice.config.tile_m;
  };
  EXPECT_EQ(rows_of_tile(320, 5120, 12800), 112);
  EXPECT_EQ(rows_of_tile(448, 7168, 9216), 112);
  EXPECT_EQ(rows_of_tile(420, 8192, 4096), 144);
  EXPECT_EQ(rows_of_tile(352, 8192, 14336), 176);
  EXPECT_EQ(rows_of_tile(700, 8192, 4096), 176);
}

TEST(GemmConfig, swapped_has_any_number_of_rows_in_steps_of_16) {
  device::GemmConfig config{.tile_m = 160, .tile_n = 128, .stages = 4, .boxes = 4, .swapped = true};
  EXPECT_TRUE(device::legal(config));
  EXPECT_EQ(config.slices(), 1) << "a consumer has 64 of the columns";
  EXPECT_EQ(config.slice_sums(), 80);
  EXPECT_EQ(config.boxes_of_slice() * config.store_rows(), 160);
  config.out = device::Element::F32;
  EXPECT_EQ(config.boxes_of_slice() * config.box_bytes(), 160 * 64 * 4);
  config.tile_m = 168;
  EXPECT_FALSE(device::legal(config)) << "half of it is no multiple of 8 rows";
  config.tile_m = 288;
  EXPECT_FALSE(device::legal(config)) << "a wgmma has at most 256 columns";
  config.tile_m = 160;
  config.tile_n = 64;
  EXPECT_FALSE(device::legal(config)) << "a consumer has no whole slice";
  config.ping_pong = true;
  EXPECT_TRUE(device::legal(config));
  config.m_major = true;
  EXPECT_FALSE(device::legal(config));
}

// Each further box of the last tile costs time.
TEST(GemmConfig, has_few_boxes_of_c) {
  const auto boxes = [](int rows) {
    return device::GemmConfig{.tile_m = rows, .tile_n = 128, .swapped = true}.boxes_of_slice();
  };
  EXPECT_EQ(boxes(192), 3);
  EXPECT_EQ(boxes(144), 3);
  EXPECT_EQ(boxes(208), 2) << "13 boxes of 16 rows took 2 us longer";
  EXPECT_EQ(boxes(112), 2);
}

TEST(GemmConfig, has_boxes_of_32_columns_in_pairs_alone) {
  device::GemmConfig config{.tile_m = 128, .tile_n = 160, .stages = 4, .boxes = 4};
  EXPECT_TRUE(device::legal(config));
  EXPECT_EQ(config.box_columns(), 32);
  EXPECT_TRUE(config.shares_b_rows()) << "five boxes";
  config.cluster = 1;
  EXPECT_FALSE(device::legal(config));
}

// The boxes of both consumers lie in one stage, half of it each, so both must have read it.
TEST(GemmConfig, has_boxes_in_a_stage_that_both_consumers_read) {
  const auto found = std::ranges::find_if(gemm_tiles(), &device::GemmConfig::boxes_in_stage);
  ASSERT_NE(found, gemm_tiles().end());
  device::GemmConfig config = *found;
  EXPECT_TRUE(device::legal(config));
  EXPECT_LE(config.shared_bytes(),
            device::GemmConfig::kBarrierBytes + config.stages * config.stage_bytes());
  config.boxes = config.stage_bytes() / 2 / config.box_bytes() + 1;
  EXPECT_FALSE(device::legal(config)) << "a half holds fewer";
  config = *found;
  config.ping_pong = true;
  EXPECT_FALSE(device::legal(config)) << "each stage has one consumer";
}

// Half of the rows leave, and other ranks wait for them. Then one consumer stores while the other
// multiplies, and each half is a wave of its own.
TEST(GemmChoice, sums_that_leave_take_tiles_that_are_stored_while_others_are_made) {
  GemmSpec spec = product(512, 5120, 4096);
  spec.panels.push_back(spec.panels.front());
  spec.panels.front().done = 4096;
  const GemmChoice choice = choose_gemm(spec, kMultiprocessors);
  EXPECT_TRUE(choice.config.ping_pong);
  EXPECT_EQ(tiles_of(spec, choice.config), 2 * 64);
}

// Sums of the first panel leave, and the second one adds what arrives. In tiles of 64 columns each
// panel is a wave, so what leaves crosses the link while the second one is multiplied.
TEST(GemmChoice, sums_that_are_exchanged_leave_a_wave_earlier) {
  GemmSpec spec = product(256, 4096, 4096);
  EXPECT_EQ(choose_gemm(product(256, 8192, 4096), kMultiprocessors).config.tile_n, 128);
  spec.panels.push_back(spec.panels.front());
  spec.panels.front().done = 4096;
  spec.panels.back().addends = {{.address = 4096, .stride = 4096}};
  const GemmChoice choice = choose_gemm(spec, kMultiprocessors);
  EXPECT_EQ(choice.config.tile_n, 64);
  EXPECT_TRUE(choice.config.ping_pong);
}

// 96 tiles of 64 columns for each panel would share a wave, and blocks with tiles of both panels
// there would wait for all sums before their last tile.
TEST(GemmChoice, sums_that_are_exchanged_do_not_share_a_wave_with_totals) {
  GemmSpec spec = product(512, 3072, 2048);
  spec.panels.push_back(spec.panels.front());
  spec.panels.front().done = 4096;
  spec.panels.back().addends = {{.address = 4096, .stride = 3072}};
  EXPECT_EQ(choose_gemm(spec, kMultiprocessors).config.tile_n, 128);
}

// A long GEMM runs at the limit of power, so it takes tiles that load less for each value.
TEST(GemmChoice, long_products_take_tiles_that_need_less_power) {
  const auto choose = [](std::int64_t rows, std::int64_t n, std::int64_t k, bool m_major) {
    GemmSpec spec = product(rows, n, k);
    spec.m_major = m_major;
    return choose_gemm(spec, kMultiprocessors).config;
  };
  const auto rows_of_value = [](const device::GemmConfig& config) {
    return (config.tile_m + static_cast<double>(config.tile_n) / config.cluster) /
           (config.tile_m * config.tile_n);
  };
  EXPECT_LT(rows_of_value(choose(8192, 8192, 14336, false)), 0.0095);
  EXPECT_LT(rows_of_value(choose(8192, 14336, 8192, false)), 0.0095);
  EXPECT_LT(rows_of_value(choose(8192, 14336, 8192, true)), 0.0095);
  const device::GemmConfig shorter = choose(2048, 8192, 4096, false);
  EXPECT_EQ(std::pair(shorter.tile_m, shorter.tile_n), std::pair(128, 128));
}

// 288 rows are three tiles of 96: two panels of 5,120 columns are one wave of 96 x 256, and two of
// smaller tiles. 192 rows are one tile of 192, which loads less.
TEST(GemmChoice, panels_of_288_rows_are_one_wave_of_wide_tiles) {
  const auto sent = [](std::int64_t rows, std::int64_t n, std::int64_t k) {
    GemmSpec spec = product(rows, n, k);
    spec.panels.push_back(spec.panels.front());
    spec.panels.front().done = 4096;
    spec.panels.back().addends = {{.address = 4096, .stride = n}};
    return choose_gemm(spec, kMultiprocessors).config;
  };
  const device::GemmConfig wide = sent(288, 5120, 12800);
  EXPECT_EQ(std::pair(wide.tile_m, wide.tile_n), std::pair(96, 256));
  const device::GemmConfig high = sent(192, 8192, 14336);
  EXPECT_EQ(std::pair(high.tile_m, high.tile_n), std::pair(192, 128));
}

// Three of four panels arrive during the kernel. With tiles of 128 x 320 all are in one wave, so
// the rows that arrive last would meet a whole tile's work.
TEST(GemmChoice, rows_that_arrive_late_take_smaller_tiles) {
  GemmSpec spec = product(512, 2560, 8192);
  for (int panel = 1; panel < 4; ++panel) spec.panels.push_back(spec.panels.front());
  const auto waves = [&] {
    const GemmChoice choice = choose_gemm(spec, kMultiprocessors);
    return device::ceil_div(tiles_of(spec, choice.config) * choice.config.cluster,
                            kMultiprocessors);
  };
  EXPECT_EQ(waves(), 1);
  std::uint32_t flag = 0;
  for (int panel = 1; panel < 4; ++panel) spec.panels[panel].k_chunks.front().ready.flag = &flag;
  EXPECT_GT(waves(), 1);
}

TEST(GemmChoice, two_rows_of_tiles_are_cut_until_the_gpu_is_full) {
  for (const std::int64_t rows : {192, 256}) {
    const GemmSpec spec = product(rows, 5120, 12800);
    const GemmChoice choice = choose_gemm(spec, kMultiprocessors);
    const int units =
        device::unit_count(tiles_of(spec, choice.config), choice.full_tiles, choice.parts);
    EXPECT_GE(units * choice.config.cluster, kMultiprocessors * 3 / 4) << rows;
  }
}

TEST(GemmChoice, rows_that_are_no_multiple_of_16_bytes_are_stored_by_element) {
  EXPECT_EQ(choose_gemm(product(512, 1001, 1024), kMultiprocessors).config.store,
            device::GemmStore::Direct);
  EXPECT_EQ(choose_gemm(product(512, 1008, 1024), kMultiprocessors).config.store,
            device::GemmStore::Bulk);
}

TEST(GemmChoice, blocks_that_copy_are_given_to_variants_that_can) {
  GemmSpec spec = product(8192, 1280, 8192);
  spec.copy_blocks = 8;
  EXPECT_TRUE(choose_gemm(spec, kMultiprocessors).config.copies);
}

TEST(GemmChoice, a_counter_grows_once_for_every_block_of_c) {
  const device::GemmConfig together{.tile_m = 128, .tile_n = 256};
  const device::GemmConfig in_turn{.tile_m = 128, .tile_n = 128, .ping_pong = true};
  EXPECT_EQ(arrivals({.rows = 129}, 257, {.config = together}), 2U * 2 * 2);
  EXPECT_EQ(arrivals({.rows = 129}, 257, {.config = in_turn}), 2U * 3);
}

DiagCode refusal_of(const GemmSpec& spec) {
  const Checked<Ok> checked = check(spec, kMultiprocessors);
  EXPECT_FALSE(checked.ok());
  return checked.ok() ? DiagCode{} : checked.error().code;
}

TEST(Gemm, takes_a_plain_product) {
  EXPECT_TRUE(check(product(77, 64, 1032), kMultiprocessors).ok());
}

TEST(Gemm, refuses_what_the_copy_engine_cannot_read) {
  GemmSpec spec = product(77, 64, 1032);
  spec.b = 4100;
  EXPECT_EQ(refusal_of(spec), DiagCode::G041);
  spec = product(77, 64, 1031);  // rows of 2,062 bytes
  EXPECT_EQ(refusal_of(spec), DiagCode::G041);
}

TEST(Gemm, refuses_what_there_is_no_kernel_for) {
  GemmSpec spec = product(512, 1024, 1024);
  spec.add = true;  // into bf16
  EXPECT_EQ(refusal_of(spec), DiagCode::G060);
  spec = product(512, 1001, 1024);
  spec.b_stride = 1008;
  spec.out = device::Element::F32;
  spec.add = true;
  spec.copy_blocks = 8;
  EXPECT_TRUE(check(spec, kMultiprocessors).ok());
  spec.in = device::Element::F16;
  spec.panels.front().addends = {{.address = 4096, .stride = 1008}};  // beyond its range
  EXPECT_EQ(refusal_of(spec), DiagCode::G060);
}

// As in the backward pass for weights.
TEST(Gemm, reads_a_stored_as_its_transpose) {
  GemmSpec spec = product(4096, 8192, 8192);
  spec.m_major = true;
  spec.panels.front().k_chunks.front().stride = 4096;
  ASSERT_TRUE(check(spec, kMultiprocessors).ok());
  const GemmChoice choice = choose_gemm(spec, kMultiprocessors);
  EXPECT_TRUE(choice.config.m_major);
  EXPECT_NE(gemm_variant(choice.config).name.find("_km_kn_"), std::string::npos);
  spec.panels[0].addends = {{.address = 4096, .stride = 8192}};  // the identity lies along K
  EXPECT_EQ(refusal_of(spec), DiagCode::G060);
  spec.panels[0].addends.clear();
  spec.layout = device::GemmLayout::KMajor;
  EXPECT_EQ(refusal_of(spec), DiagCode::G060);
}

TEST(Gemm, adds_what_lies_as_c_does) {
  GemmSpec spec = product(512, 1024, 1024);
  spec.panels[0].addends = {{.address = 4096, .stride = 1024}};
  EXPECT_TRUE(check(spec, kMultiprocessors).ok());
  spec.panels[0].addends[0].stride = 1021;
  EXPECT_EQ(check(spec, kMultiprocessors).error().code, DiagCode::G041);
  spec.panels[0].addends[0].stride = 1024;
  spec.in = spec.out = device::Element::F16;
  EXPECT_EQ(check(spec, kMultiprocessors).error().code, DiagCode::G060);
  spec.in = spec.out = device::Element::BF16;
  spec.layout = device::GemmLayout::KMajor;
  EXPECT_TRUE(check(spec, kMultiprocessors).ok());
  spec.maps = {{.leaf = Leaf::Add, .is_row = true}};
  spec.panels.front().map_operands = {{.address = 4096, .stride = 0}};
  const auto refused = check(spec, kMultiprocessors);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, DiagCode::G060);
  EXPECT_NE(render_message(refused.error()).find("addends"), std::string::npos);
}

// Stores to a peer are slow, so one consumer multiplies meanwhile if it has a further tile.
TEST(GemmChoice, panels_that_leave_are_stored_beside_products) {
  bool is_otherwise = false;
  for (const std::int64_t rows : {264, 512, 1024, 2048}) {
    GemmSpec spec = product(rows, 1280, 8192);
    is_otherwise = is_otherwise || !choose_gemm(spec, kMultiprocessors).config.ping_pong;
    spec.panels[0].fused_store = 0;
    const device::GemmConfig config = choose_gemm(spec, kMultiprocessors).config;
    const bool is_one_wave = tiles_of(spec, config) * config.cluster <= kMultiprocessors;
    EXPECT_TRUE(config.ping_pong || is_one_wave) << rows;
  }
  EXPECT_TRUE(is_otherwise);
}

TEST(Gemm, refuses_empty_products_and_blocks_that_leave_none_to_multiply) {
  for (const auto& [m, n, k] : {std::tuple{0, 64, 64}, {64, 0, 64}, {64, 64, 0}}) {
    EXPECT_EQ(refusal_of(product(m, n, k)), DiagCode::G062) << m << " " << n << " " << k;
  }
  GemmSpec spec = product(512, 1024, 1024);
  spec.panels.clear();
  EXPECT_EQ(refusal_of(spec), DiagCode::G062);
  spec = product(512, 1024, 1024);
  for (const int blocks : {-2, 3, 132}) {
    spec.copy_blocks = blocks;
    EXPECT_EQ(refusal_of(spec), DiagCode::G062) << blocks;
  }
  spec.copy_blocks = 130;
  EXPECT_TRUE(check(spec, kMultiprocessors).ok());
  EXPECT_TRUE(choose_gemm(spec, kMultiprocessors).config.copies);
}

TEST(Gemm, refuses_k_chunks_that_are_no_partition_of_the_columns) {
  const auto with = [](std::vector<std::pair<int, int>> ranges) {
    GemmSpec spec = product(77, 64, 320);
    spec.panels[0].k_chunks.clear();
    for (const auto& [begin, count] : ranges) {
      spec.panels[0].k_chunks.push_back(
          {.a = 4096, .stride = 320, .k_begin = begin, .k_count = count});
    }
    return spec;
  };
  EXPECT_TRUE(check(with({{128, 192}, {0, 128}}), kMultiprocessors).ok());
  EXPECT_EQ(refusal_of(with({{0, 128}})), DiagCode::G042);
  EXPECT_EQ(refusal_of(with({{0, 128}, {64, 256}})), DiagCode::G042);
  EXPECT_EQ(refusal_of(with({{0, 100}, {100, 220}})), DiagCode::G042);
}

}  // namespace gemm_test
}  // namespace harpe::cuda
