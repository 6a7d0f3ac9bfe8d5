#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

#include "exec/cuda/kernels/attention/attention.h"
#include "exec/cuda/kernels/attention/attention_variants.h"
#include "exec/cuda/kernels/attention/decode.h"
#include "exec/cuda/kernels/attention/decode_variants.h"

namespace harpe::cuda {
namespace attention_plan_test {

using device::AttentionConfig;
using device::Element;

constexpr int kMultiprocessors = 132;

HeadTensor packed(DeviceAddress address, std::int64_t rows, std::int64_t heads,
                  std::int64_t columns) {
  return {address, {rows * heads * columns, heads * columns, columns}};
}

AttentionSpec some_spec() {
  AttentionSpec spec{.batch = 2, .heads = 8, .kv_heads = 2, .query_dim = 128, .value_dim = 128};
  AttentionPanelSpec panel{.rows = 300, .position = 100};
  panel.queries = packed(4096, 300, 8, 128);
  panel.output = packed(8192, 300, 8, 128);
  panel.lse = {12288, {8 * 300, 1, 300}};
  AttentionChunkSpec chunk{.rows = 400};
  chunk.keys = packed(16384, 400, 2, 128);
  chunk.values = packed(32768, 400, 2, 128);
  spec.panels = {panel, panel};
  spec.chunks = {chunk};
  return spec;
}

DiagCode refusal_of(const AttentionSpec& spec) {
  const Checked<Ok> checked = check(spec, kMultiprocessors);
  EXPECT_FALSE(checked.ok());
  return checked.ok() ? DiagCode{} : checked.error().code;
}

TEST(Attention, refuses_heads_that_no_kernel_is_for) {
  AttentionSpec spec = some_spec();
  spec.query_dim = 80;
  EXPECT_EQ(refusal_of(spec), DiagCode::G060);
}

TEST(Attention, refuses_what_the_copy_engine_cannot_reach) {
  AttentionSpec spec = some_spec();
  spec.panels[1].queries.address += 2;
  EXPECT_EQ(refusal_of(spec), DiagCode::G041);
  spec = some_spec();
  spec.chunks[0].values.strides.row += 4;
  EXPECT_EQ(refusal_of(spec), DiagCode::G041);
}

TEST(Attention, refuses_tables_that_do_not_fit_and_groups_that_do_not_divide) {
  AttentionSpec spec = some_spec();
  spec.chunks.clear();
  EXPECT_EQ(refusal_of(spec), DiagCode::G062);
  spec = some_spec();
  spec.kv_heads = 3;
  EXPECT_EQ(refusal_of(spec), DiagCode::G062);
  spec = some_spec();
  spec.panels.resize(device::kMaxAttentionPanels + 1, spec.panels[0]);
  EXPECT_EQ(refusal_of(spec), DiagCode::G062);
  spec = some_spec();
  spec.carried = true;
  spec.panels[0].lse.address = 0;
  EXPECT_EQ(refusal_of(spec), DiagCode::G062);
}

TEST(Attention, refuses_copying_blocks_that_leave_none_to_compute) {
  AttentionSpec spec = some_spec();
  for (const int blocks : {-1, kMultiprocessors}) {
    spec.copy_blocks = blocks;
    EXPECT_EQ(refusal_of(spec), DiagCode::G062) << blocks;
  }
  spec.copy_blocks = kMultiprocessors - 1;
  EXPECT_TRUE(check(spec, kMultiprocessors).ok());
  EXPECT_EQ(plan_attention(spec, AttentionConfig{}, kMultiprocessors).blocks, kMultiprocessors);
}

TEST(Attention, refuses_scales_that_turn_maxima_round) {
  AttentionSpec spec = some_spec();
  spec.scale = -1;
  EXPECT_EQ(refusal_of(spec), DiagCode::G063);
}

TEST(Attention, takes_wide_tiles_of_keys_where_a_mask_cuts_few) {
  AttentionSpec spec = some_spec();
  EXPECT_EQ(choose_attention(spec).kv_tile, 160);
  spec.causal = true;
  EXPECT_EQ(choose_attention(spec).kv_tile, 128);
  spec.chunks.resize(device::kMaxAttentionChunks, spec.chunks[0]);
  spec.chunks[0].rows = 8192;
  EXPECT_EQ(choose_attention(spec).kv_tile, 160);
  spec.to_state = true;
  EXPECT_EQ(choose_attention(spec).output, Element::F32);
}

TEST(Attention, takes_the_measured_tiles_of_other_heads) {
  AttentionSpec spec = some_spec();
  spec.query_dim = spec.value_dim = 64;
  EXPECT_EQ(choose_attention(spec).kv_tile, 128);
  EXPECT_EQ(choose_attention(spec).consumers, 2);
  spec.query_dim = 192;
  spec.value_dim = 128;
  EXPECT_EQ(choose_attention(spec).kv_tile, 128);
}

TEST(Attention, plans_tiles_maps_and_blocks) {
  const AttentionSpec spec = some_spec();
  const AttentionPlan plan = plan_attention(spec, AttentionConfig{}, kMultiprocessors);
  EXPECT_EQ(plan.args.tiles, 6);
  EXPECT_EQ(plan.args.slices, 16);
  EXPECT_EQ(plan.blocks, 96);
  EXPECT_EQ(plan.args.heads_per_kv_head, 4);
  EXPECT_EQ(plan.maps.size(), 4U);
  EXPECT_EQ(plan.maps[2].sizes, (std::array<std::int64_t, 4>{128, 2, 400, 2}));
  EXPECT_EQ(plan.maps[2].strides, (std::array<std::int64_t, 4>{1, 128, 256, 102400}));
  EXPECT_EQ(plan.maps[2].box, (std::array<int, 4>{64, 1, 128, 1}));
  EXPECT_FLOAT_EQ(plan.args.scale_log2,
                  static_cast<float>(std::log2(std::exp(1.0)) / std::sqrt(128.0)));
  EXPECT_EQ(arrivals(spec, spec.panels[0], plan.config), 3U * 16U * 2U);
  EXPECT_EQ(plan_attention(spec, AttentionConfig{}, 50).blocks, 50);
}

TEST(Attention, puts_each_map_where_the_kernel_reads_it) {
  AttentionPlan plan = plan_attention(some_spec(), AttentionConfig{}, kMultiprocessors);
  EXPECT_EQ(&map_of(plan.args, 1), &plan.args.panels[1].queries);
  EXPECT_EQ(&map_of(plan.args, 2), &plan.args.chunks[0].keys);
  EXPECT_EQ(&map_of(plan.args, 3), &plan.args.chunks[0].values);
}

TEST(AttentionVariants, have_names_of_their_own_and_fit_a_multiprocessor) {
  std::set<std::string> names;
  std::set<std::string> sources;
  for (const KernelVariant& variant : attention_variants()) {
    names.insert(variant.name);
    sources.insert(variant.source);
    EXPECT_LE(variant.shared_bytes, kMostSharedBytes);
  }
  const std::size_t all = attention_configs().size() + decode_configs().size();
  EXPECT_EQ(names.size(), all);
  EXPECT_EQ(sources.size(), all);
}

// One query for each sequence: [batch, heads, 128] against [batch, keys, kv_heads, 128].
AttentionSpec decoding(std::int64_t batch, std::int64_t keys) {
  AttentionSpec spec{.batch = batch,
                     .heads = 32,
                     .kv_heads = 8,
                     .query_dim = 128,
                     .value_dim = 128,
                     .to_state = true};
  AttentionPanelSpec panel{.rows = 1};
  panel.queries = packed(4096, 1, 32, 128);
  panel.output = packed(8192, 1, 32, 128);
  panel.lse = {12288, {32, 32, 1}};
  AttentionChunkSpec chunk{.rows = keys};
  chunk.keys = packed(16384, keys, 8, 128);
  chunk.values = packed(32768, keys, 8, 128);
  spec.panels = {panel};
  spec.chunks = {chunk};
  return spec;
}

TEST(AttentionOfOneQuery, has_heads_that_share_keys_as_rows) {
  const AttentionSpec spec = with_groups_as_rows(decoding(2, 4096));
  EXPECT_EQ(spec.heads, 8);
  EXPECT_EQ(spec.panels.front().rows, 4);
  EXPECT_EQ(spec.panels.front().queries.strides.row, 128);
  EXPECT_EQ(spec.panels.front().queries.strides.head, 4 * 128);
  EXPECT_EQ(spec.panels.front().lse.strides.row, 1);
  EXPECT_EQ(spec.panels.front().lse.strides.head, 4);
  AttentionSpec causal = decoding(2, 4096);
  causal.causal = true;
  EXPECT_EQ(with_groups_as_rows(causal).heads, 32) << "its rows would be positions";
  AttentionSpec more = decoding(2, 4096);
  more.panels.front().rows = 2;
  EXPECT_EQ(with_groups_as_rows(more).heads, 32);
}

TEST(AttentionOfOneQuery, has_keys_in_parts_that_keep_a_gpu_busy) {
  const auto parts_of = [](std::int64_t batch, std::int64_t keys) {
    return choose_parts(with_groups_as_rows(decoding(batch, keys)), kMultiprocessors);
  };
  EXPECT_EQ(parts_of(1, 65536), 16) << "of 8 heads";
  EXPECT_EQ(parts_of(1, 1024), 4) << "of 256 keys at least";
  EXPECT_EQ(parts_of(8, 65536), 2);
  EXPECT_EQ(parts_of(32, 65536), 1);
  EXPECT_EQ(parts_of(1, 4099), 1) << "a prime";
  AttentionSpec apart = with_groups_as_rows(decoding(2, 4096));
  EXPECT_EQ(choose_parts(apart, kMultiprocessors), 8);
  apart.chunks.front().keys.strides.batch += 1024;
  EXPECT_EQ(choose_parts(apart, kMultiprocessors), 1) << "parts are not equally far apart";
  AttentionSpec carried = with_groups_as_rows(decoding(1, 4096));
  carried.carried = true;
  EXPECT_EQ(choose_parts(carried, kMultiprocessors), 1);
}

TEST(AttentionOfOneQuery, has_parts_as_batch_entries_with_the_same_queries) {
  AttentionSpec spec = with_groups_as_rows(decoding(2, 4096));
  spec.parts = 8;
  ASSERT_TRUE(check(spec, kMultiprocessors).ok());
  const AttentionPlan plan = plan_attention(spec, choose_attention(spec), kMultiprocessors);
  EXPECT_EQ(plan.args.slices, 2 * 8 * 8);
  EXPECT_EQ(plan.args.parts, 8);
  EXPECT_EQ(plan.args.extents[0].rows, 512);
  EXPECT_EQ(plan.maps[0].sizes[3], 2) << "queries";
  EXPECT_EQ(plan.maps[1].sizes[3], 16) << "keys";
  spec.parts = 3;
  EXPECT_EQ(refusal_of(spec), DiagCode::G062) << "not equal";
  AttentionSpec masked = decoding(2, 4096);
  masked.causal = true;
  masked.parts = 8;
  EXPECT_EQ(refusal_of(masked), DiagCode::G062);
}

// 777 keys make three parts. The kernel that joins the parts rounds the result; the kernels that
// compute them keep f32 states.
TEST(AttentionOfOneQuery, has_parts_whose_states_are_f32_whatever_it_leaves) {
  for (const bool to_state : {true, false}) {
    AttentionSpec spec = with_groups_as_rows(decoding(1, 777));
    spec.parts = choose_parts(spec, kMultiprocessors);
    ASSERT_EQ(spec.parts, 3);
    spec.to_state = to_state;
    ASSERT_TRUE(check(spec, kMultiprocessors).ok());
    const AttentionConfig config = choose_attention(spec);
    EXPECT_EQ(config.output, Element::F32);
    EXPECT_EQ(plan_attention(spec, config, kMultiprocessors).args.parts, 3);
  }
  AttentionSpec half = with_groups_as_rows(decoding(1, 777));
  half.parts = 3;
  half.to_state = false;
  half.element = Element::F16;
  EXPECT_EQ(refusal_of(half), DiagCode::G060) << "no kernel leaves states of f16";
}

// The kernel counts the tiles of all pairs in 32 bits.
TEST(AttentionOfOneQuery, has_shares_of_no_more_tiles_than_the_kernel_counts) {
  AttentionSpec spec = decoding(2, 4096);
  spec.shares = kMultiprocessors;
  ASSERT_TRUE(check(spec, kMultiprocessors).ok());
  const device::DecodeArgs args = plan_decode(spec).args;
  EXPECT_EQ(args.shares.number, kMultiprocessors);
  EXPECT_EQ(args.tiles.number, 4096 / 128);
  EXPECT_EQ(args.boxes * args.box_rows, 128);
  AttentionSpec many = spec;
  many.batch = 65535;
  ASSERT_TRUE(check(many, kMultiprocessors).ok());
  many.chunks.front().rows = 1 << 29;
  EXPECT_EQ(refusal_of(many), DiagCode::G062);
  spec.batch = 0;
  EXPECT_EQ(refusal_of(spec), DiagCode::G062) << "nothing to divide by";
}

}  // namespace attention_plan_test
}  // namespace harpe::cuda
