#include <gtest/gtest.h>

#include <utility>

#include "exec/cuda/kernels/gemm/gemm.h"
#include "exec/cuda/kernels/plan_launches.h"
#include "tests/unit/cuda/gemm_specs.h"

// Which kernels take sums that ranks store at each other.
namespace harpe::cuda {
namespace gemm_test {

// Sums that ranks store at each other: panels with one panel's rows, and the total of arrivals.
GemmSpec exchanged(std::int64_t m) {
  GemmSpec spec = product(m, 1024, 1024);
  GemmPanelSpec sent = spec.panels.front();
  sent.k_chunks.clear();
  sent.rows_of = 0;
  GemmPanelSpec total = sent;
  total.addends = {{.address = 4096, .stride = 1024}, {.address = 8192, .stride = 1024}};
  spec.panels.push_back(sent);
  spec.panels.push_back(total);
  return spec;
}

TEST(GemmChoice, threads_store_panels_of_the_same_rows) {
  for (const auto layout : {device::GemmLayout::NMajor, device::GemmLayout::KMajor}) {
    for (const std::int64_t rows : {1, 8, 100, 128, 129, 256}) {
      GemmSpec spec = exchanged(rows);
      spec.layout = layout;
      ASSERT_TRUE(check(spec, kMultiprocessors).ok()) << rows;
      const device::GemmConfig config = choose_gemm(spec, kMultiprocessors).config;
      EXPECT_TRUE(config.few_rows || (config.by_threads && rows > 32)) << rows;
      if (!config.few_rows) continue;
      EXPECT_LT(config.tile_m * config.cluster, 2 * rows + 8) << "their rows are in the tile once";
    }
  }
  EXPECT_EQ(row_panels(exchanged(8)), 1);
  EXPECT_TRUE(has_addends(exchanged(8)));
  EXPECT_FALSE(adds_to_sums(exchanged(8)));
  EXPECT_TRUE(choose_gemm(exchanged(300), kMultiprocessors).config.by_threads);
  GemmSpec awaited = exchanged(300);
  awaited.panels.back().done = 4096;
  const auto refused = check(awaited, kMultiprocessors);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, DiagCode::G060);
  EXPECT_NE(render_message(refused.error()).find("panels of the same rows"), std::string::npos);
}

TEST(GemmChoice, threads_of_tile_kernels_exchange_no_more_than_is_in_data) {
  const auto with_flag = [](std::int64_t rows) {
    GemmSpec spec = exchanged(rows);
    GemmAddendSpec& addend = spec.panels.back().addends.back();
    addend.ready.flag = reinterpret_cast<const std::uint32_t*>(std::uintptr_t{4096});
    addend.is_in_data = true;
    return spec;
  };
  const std::int64_t most = kMostInData / (1024 * 2);
  EXPECT_TRUE(check(with_flag(most), kMultiprocessors).ok());
  EXPECT_FALSE(check(with_flag(most + 1), kMultiprocessors).ok());
  GemmSpec many = exchanged(300);
  many.panels.insert(many.panels.end() - 1, device::GemmConfig::kMostNotedPanels, many.panels[1]);
  EXPECT_FALSE(check(many, kMultiprocessors).ok());
}

// A plain product takes no kernel that adds up what others store.
TEST(GemmChoice, threads_store_only_where_they_add_up) {
  for (const device::GemmConfig& config : gemm_configs(product(256, 1024, 1024))) {
    EXPECT_FALSE(config.by_threads);
  }
}

TEST(GemmChoice, panels_without_rows_are_behind_and_have_those_of_one) {
  const auto is_refused = [](const GemmSpec& spec) { return !check(spec, kMultiprocessors).ok(); };
  GemmSpec before = exchanged(8);
  std::swap(before.panels[0], before.panels[1]);
  EXPECT_TRUE(is_refused(before));
  GemmSpec other = exchanged(8);
  other.panels[1].rows = 7;
  EXPECT_TRUE(is_refused(other));
  GemmSpec chained = exchanged(8);
  chained.panels[2].rows_of = 1;
  EXPECT_TRUE(is_refused(chained));
  GemmSpec nowhere = exchanged(8);
  nowhere.panels[2].rows_of = 3;
  EXPECT_TRUE(is_refused(nowhere));
  GemmSpec twice = exchanged(8);
  twice.panels[1].k_chunks = twice.panels[0].k_chunks;
  EXPECT_TRUE(is_refused(twice));
}

// Sums for another rank in `bands` panels, then as many of which the rank adds the total.
GemmSpec reduced(std::int64_t m, std::int64_t n, std::int64_t k, std::size_t bands) {
  GemmSpec spec = product(m, n, k);
  const GemmPanelSpec panel = spec.panels.front();
  spec.panels.assign(2 * bands, panel);
  for (std::size_t i = 0; i < bands; ++i) {
    spec.panels[i].done = 4096;
    spec.panels[bands + i].addends = {{.address = 4096, .stride = n}};
  }
  return spec;
}

// The last sums of short tiles leave as fast as their wave fills the link.
TEST(GemmPace, spaces_the_last_sums_of_short_tiles) {
  device::GemmConfig pairs;
  for (const device::GemmConfig& config : gemm_configs(reduced(1024, 2048, 2048, 1))) {
    const bool is_square = config.tile_m == 128 && config.tile_n == 128 && config.cluster == 2;
    if (is_square && config.ping_pong && !config.by_threads) pairs = config;
  }
  ASSERT_TRUE(pairs.ping_pong);
  constexpr int kClusters = kMultiprocessors / 2;
  const auto clocks = [&](const GemmSpec& spec) { return last_clocks(spec, pairs, kClusters); };
  const int full = pairs.clocks_of_full_link();
  EXPECT_EQ(full, 5000);
  EXPECT_EQ(clocks(reduced(1024, 2048, 2048, 1)), full * 64 / kClusters);
  EXPECT_EQ(clocks(reduced(512, 3072, 2048, 1)), full * 48 / kClusters);
  EXPECT_EQ(clocks(reduced(1024, 5120, 2560, 1)), full * (160 - 2 * kClusters) / kClusters)
      << "the last of three waves";
  EXPECT_EQ(clocks(reduced(1024, 2560, 2560, 2)), full) << "none of the next tiles awaits them";
  EXPECT_EQ(clocks(reduced(1024, 4096, 4096, 1)), 0) << "a longer tile outlasts them";
  EXPECT_EQ(clocks(product(1024, 4096, 2048)), 0);
  pairs.ping_pong = false;
  EXPECT_EQ(clocks(reduced(1024, 2048, 2048, 1)), 0);
}

// The total of the rank's sums and an addend, stored at two ranks.
GemmSpec replicated(std::int64_t m, std::int64_t n) {
  GemmSpec spec = product(m, n, 1024);
  GemmPanelSpec copy = spec.panels.front();
  copy.k_chunks.clear();
  copy.rows_of = 0;
  copy.is_copy = true;
  spec.panels.front().addends = {{.address = 4096, .stride = n}};
  spec.panels.push_back(copy);
  return spec;
}

TEST(GemmChoice, totals_are_stored_twice_by_the_kernel_of_many_rows) {
  for (const std::int64_t rows : {8, 128, 300, 1024}) {
    const GemmSpec spec = replicated(rows, 1024);
    ASSERT_TRUE(check(spec, kMultiprocessors).ok()) << rows;
    const GemmChoice choice = choose_gemm(spec, kMultiprocessors);
    EXPECT_FALSE(choice.config.few_rows) << rows;
    GemmSpec once = spec;
    once.panels.pop_back();
    EXPECT_EQ(whole_gemm(spec, choice.config).full_tiles,
              whole_gemm(once, choice.config).full_tiles)
        << "a copy has no tiles of its own";
  }
  EXPECT_FALSE(check(replicated(512, 1001), kMultiprocessors).ok()) << "stored by element";
  GemmSpec adds = replicated(512, 1024);
  adds.panels[1].addends = adds.panels[0].addends;
  EXPECT_FALSE(check(adds, kMultiprocessors).ok()) << "a copy stores what the other one does";
}

TEST(GemmChoice, sums_of_many_rows_are_stored_at_several_ranks) {
  GemmSpec spec = exchanged(300);
  spec.panels.pop_back();
  ASSERT_TRUE(check(spec, kMultiprocessors).ok());
  EXPECT_FALSE(choose_gemm(spec, kMultiprocessors).config.few_rows);
}

}  // namespace gemm_test
}  // namespace harpe::cuda
