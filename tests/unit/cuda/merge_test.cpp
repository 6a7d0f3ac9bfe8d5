#include "exec/cuda/actions/merge.h"

#include <gtest/gtest.h>

namespace harpe::cuda {
namespace merge_test {

constexpr DeviceAddress kState = 0x1000'0000;

GemmSpec product(DeviceAddress a, std::int64_t rows, DeviceAddress c) {
  GemmSpec spec;
  spec.n = 64;
  spec.k = 128;
  spec.out = device::Element::F32;
  spec.b = 0x100;
  spec.b_stride = 64;
  spec.panels = {{.rows = rows,
                  .pieces = {{.a = a, .stride = 128, .k_begin = 0, .k_count = 128}},
                  .c = c,
                  .c_stride = 64}};
  return spec;
}

device::FlagWait flag(std::uint32_t name) {
  return {
      .flag = reinterpret_cast<const std::uint32_t*>(0x40ULL + name), .arrivals = 1, .name = name};
}

TEST(Merge, makes_panels_of_products_of_other_rows) {
  const ArrivingLaunch launches[] = {{product(0x1000, 32, kState), {}},
                                     {product(0x9000, 16, kState + 32 * 64 * 4), flag(7)}};
  const auto merged = merge(launches, {});
  ASSERT_TRUE(merged.has_value());
  const auto& spec = std::get<GemmSpec>(*merged);
  ASSERT_EQ(spec.panels.size(), 2U);
  EXPECT_EQ(spec.panels[0].pieces[0].ready.flag, nullptr);
  EXPECT_EQ(spec.panels[1].pieces[0].ready.name, 7U);
  EXPECT_EQ(spec.panels[1].rows, 16);
  EXPECT_EQ(spec.k, 128);
}

TEST(Merge, makes_pieces_of_products_that_add_up) {
  GemmSpec second = product(0x9000, 32, kState);
  second.add = true;
  second.b = 0x100 + 128 * 64 * 2;  // the next 128 rows of B
  const ArrivingLaunch launches[] = {{product(0x1000, 32, kState), {}}, {second, flag(3)}};
  const auto merged = merge(launches, {});
  ASSERT_TRUE(merged.has_value());
  const auto& spec = std::get<GemmSpec>(*merged);
  ASSERT_EQ(spec.panels.size(), 1U);
  ASSERT_EQ(spec.panels[0].pieces.size(), 2U);
  EXPECT_EQ(spec.panels[0].pieces[1].k_begin, 128);
  EXPECT_EQ(spec.panels[0].pieces[1].ready.name, 3U);
  EXPECT_EQ(spec.k, 256);
  EXPECT_FALSE(spec.add);
}

TEST(Merge, leaves_products_of_other_weights_apart) {
  GemmSpec second = product(0x9000, 32, kState + 32 * 64 * 4);
  second.b = 0x100'0000;
  const ArrivingLaunch launches[] = {{product(0x1000, 32, kState), {}}, {second, {}}};
  EXPECT_FALSE(merge(launches, {}).has_value());
}

AttentionSpec attention(std::int64_t position, bool causal, std::int64_t rows, bool carried) {
  AttentionSpec spec;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.query_dim = 64;
  spec.value_dim = 64;
  spec.to_state = true;
  spec.carried = carried;
  spec.causal = causal;
  if (causal) spec.rule = {.lead = position, .window = 0};
  AttentionPanelSpec panel;
  panel.rows = 100;
  panel.position = position;
  panel.output.address = kState;
  spec.panels = {panel};
  spec.chunks = {{.rows = rows, .position = 0}};
  return spec;
}

TEST(Merge, places_keys_that_all_see_before_the_queries) {
  const ArrivingLaunch launches[] = {{attention(0, true, 100, false), {}},
                                     {attention(0, false, 50, true), flag(1)}};
  const auto merged = merge(launches, {});
  ASSERT_TRUE(merged.has_value());
  const auto& spec = std::get<AttentionSpec>(*merged);
  ASSERT_EQ(spec.chunks.size(), 2U);
  const std::int64_t first = spec.panels[0].position;
  EXPECT_EQ(spec.chunks[0].position, first);                            // the diagonal
  EXPECT_LE(spec.chunks[1].position + spec.chunks[1].rows - 1, first);  // all of it is seen
  EXPECT_GE(spec.chunks[1].position, 0);
  EXPECT_TRUE(spec.causal);
  EXPECT_FALSE(spec.carried);
  EXPECT_EQ(spec.chunks[1].ready.name, 1U);
}

// Blocks of 100 positions: queries 0 and 3, keys 0 and 3, then 1 and 2, as of one rank of two.
std::vector<ArrivingLaunch> zigzag() {
  const auto meet = [](std::int64_t query, std::int64_t key, bool carried, const auto& ready) {
    AttentionSpec spec = attention(0, query == key, 100, carried);
    spec.rule = {.lead = 100 * (query - key), .window = 0};
    spec.panels[0].output.address = kState + static_cast<DeviceAddress>(query) * 0x10000;
    spec.chunks[0].keys.address = 0x100000 + static_cast<DeviceAddress>(key) * 0x10000;
    return ArrivingLaunch{spec, ready};
  };
  const device::FlagWait none{};
  return {meet(0, 0, false, none), meet(3, 0, false, none), meet(3, 3, true, none),
          meet(3, 1, true, flag(1)), meet(3, 2, true, flag(2))};
}

TEST(Merge, takes_panels_of_queries_that_see_other_keys) {
  const auto merged = merge(zigzag(), {});
  ASSERT_TRUE(merged.has_value());
  const auto& spec = std::get<AttentionSpec>(*merged);
  EXPECT_TRUE(spec.causal);
  EXPECT_FALSE(spec.carried);
  ASSERT_EQ(spec.panels.size(), 2U);
  EXPECT_EQ(spec.panels[0].position, 0);
  EXPECT_EQ(spec.panels[1].position, 300);
  ASSERT_EQ(spec.chunks.size(), 4U);
  const std::int64_t positions[] = {0, 300, 100, 200};  // as they come
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(spec.chunks[i].position, positions[i]);
  EXPECT_EQ(spec.chunks[0].ready.flag, nullptr);
  EXPECT_EQ(spec.chunks[2].ready.name, 1U);
  EXPECT_EQ(spec.chunks[3].ready.name, 2U);
}

TEST(Merge, leaves_attention_apart_whose_mask_shows_what_no_launch_brings) {
  std::vector<ArrivingLaunch> launches = zigzag();
  std::get<AttentionSpec>(launches[0].spec).rule->lead = 300;  // a contradiction
  EXPECT_FALSE(merge(launches, {}).has_value());
  launches = zigzag();
  launches.erase(launches.begin() + 1);  // block 3 would see keys 0
  std::get<AttentionSpec>(launches[1].spec).carried = false;
  EXPECT_FALSE(merge(launches, {}).has_value());
}

TEST(Merge, leaves_attention_apart_that_begins_anew) {
  const ArrivingLaunch launches[] = {{attention(0, false, 50, false), {}},
                                     {attention(0, false, 50, false), {}}};
  EXPECT_FALSE(merge(launches, {}).has_value());
}

}  // namespace merge_test
}  // namespace harpe::cuda
