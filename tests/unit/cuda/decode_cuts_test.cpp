#include <gtest/gtest.h>

#include <set>

#include "exec/cuda/kernels/attention/decode.h"
#include "exec/cuda/kernels/attention/device/decode_order.h"
#include "offers/few_queries.h"

// Attention of few queries: the columns of the kernel, and the cuts of heads that share keys.
namespace harpe::cuda {
namespace decode_cuts_test {

constexpr int kBlocks = 132;

// Heads of 128, as [batch, rows, heads, 128] and [batch, keys, kv_heads, 128].
AttentionSpec spec_of(std::int64_t batch, std::int64_t heads, std::int64_t kv_heads,
                      std::int64_t rows = 1, std::int64_t keys = 8192) {
  constexpr std::int64_t kDim = 128;
  const auto tensor = [](DeviceAddress address, std::int64_t rows_each, std::int64_t heads_each,
                         std::int64_t columns) {
    return HeadTensor{.address = address,
                      .strides = {.batch = rows_each * heads_each * columns,
                                  .row = heads_each * columns,
                                  .head = columns}};
  };
  AttentionSpec spec{.batch = batch,
                     .heads = heads,
                     .kv_heads = kv_heads,
                     .query_dim = kDim,
                     .value_dim = kDim,
                     .to_state = true};
  spec.panels = {{.rows = rows,
                  .queries = tensor(0x10000, rows, heads, kDim),
                  .output = tensor(0x1000000, rows, heads, kDim),
                  .lse = tensor(0x2000000, rows, heads, 1)}};
  spec.chunks = {{.rows = keys,
                  .keys = tensor(0x10000000, keys, kv_heads, kDim),
                  .values = tensor(0x20000000, keys, kv_heads, kDim)}};
  return spec;
}

struct Choice {
  int columns;
  int cuts;
  friend bool operator==(const Choice&, const Choice&) = default;
};

Choice choose(std::int64_t heads, std::int64_t kv_heads, std::int64_t rows = 1) {
  const AttentionSpec spec = spec_of(2, heads, kv_heads, rows);
  if (!can_decode(spec)) return {0, 0};
  return {decode_config(spec).columns, cut_heads(spec)};
}

TEST(DecodeCuts, are_as_few_as_sixteen_columns_allow) {
  EXPECT_EQ(choose(64, 8), (Choice{8, 1}));
  EXPECT_EQ(choose(72, 8), (Choice{16, 1}));
  EXPECT_EQ(choose(96, 8), (Choice{16, 1}));
  EXPECT_EQ(choose(64, 4), (Choice{16, 1}));
  EXPECT_EQ(choose(24, 1), (Choice{16, 2}));
  EXPECT_EQ(choose(64, 2), (Choice{16, 2}));
  EXPECT_EQ(choose(64, 1), (Choice{16, 4}));
  EXPECT_EQ(choose(40, 1), (Choice{16, 4})) << "three do not divide it";
  EXPECT_EQ(choose(21, 1), (Choice{16, 3})) << "cut heads take 16 columns";
  EXPECT_EQ(choose(128, 1), (Choice{16, 8}));
}

TEST(DecodeCuts, are_at_most_eight) {
  EXPECT_EQ(choose(256, 1), (Choice{0, 0}));
  EXPECT_EQ(choose(17, 1), (Choice{0, 0})) << "a prime";
}

TEST(DecodeCuts, leave_the_queries_of_a_head_together) {
  EXPECT_EQ(choose(8, 8, 8), (Choice{8, 1}));
  EXPECT_EQ(choose(16, 8, 8), (Choice{16, 1}));
  EXPECT_EQ(choose(64, 8, 2), (Choice{16, 1}));
  EXPECT_EQ(choose(64, 8, 3), (Choice{16, 2}));
  EXPECT_EQ(choose(64, 8, 8), (Choice{16, 4}));
  EXPECT_EQ(choose(64, 8, 16), (Choice{16, 8}));
  EXPECT_EQ(choose(64, 8, 17), (Choice{0, 0}));
  EXPECT_EQ(choose(8, 8, 17), (Choice{0, 0}));
}

TEST(DecodeCuts, have_equally_many_shares) {
  for (const std::int64_t heads : {24, 40, 64, 96, 128}) {
    for (const std::int64_t batch : {1, 3, 32}) {
      const AttentionSpec spec = spec_of(batch, heads, 1);
      const int shares = choose_shares(spec, kBlocks);
      EXPECT_EQ(shares % cut_heads(spec), 0) << heads << " heads, batch " << batch;
      EXPECT_GE(shares, 64);
    }
  }
  EXPECT_EQ(choose_shares(spec_of(4, 128, 1), 5), 1) << "more cuts than blocks";
}

TEST(DecodeCuts, are_arguments_of_the_kernel) {
  AttentionSpec spec = spec_of(3, 128, 2);
  spec.shares = 128;
  ASSERT_TRUE(check(spec, kBlocks).ok()) << render(check(spec, kBlocks).error());
  const DecodePlan plan = plan_decode(spec);
  EXPECT_EQ(plan.pairs, 24);
  EXPECT_EQ(plan.args.batch, 3);
  EXPECT_EQ(plan.args.kv_heads.number, 2);
  EXPECT_EQ(plan.args.group.number, 16);
  EXPECT_EQ(plan.args.cuts.cuts.number, 4);
  EXPECT_EQ(plan.args.cuts.sequences.number, 3);
  EXPECT_EQ(plan.args.queries, pointer_to<const void>(spec.panels.front().queries.address));
  EXPECT_EQ(plan.maps[0].sizes[1], 2);
}

TEST(DecodeCuts, are_walked_one_after_the_other) {
  const device::DecodeCuts cuts{.cuts = device::divisor(4), .sequences = device::divisor(3)};
  const device::Divisor kv_heads = device::divisor(2);
  std::set<std::pair<int, int>> pairs;
  for (int index = 0; index < 24; ++index) {
    const device::DecodePair pair = device::pair_of(cuts, index / kv_heads, index % kv_heads);
    EXPECT_EQ(device::index_of(cuts, kv_heads, pair), index);
    EXPECT_EQ(pair.group % 4, index / 6) << "the cut";
    EXPECT_EQ(pair.sequence, index / 2 % 3);
    EXPECT_EQ(pair.group / 4, index % 2) << "the key head";
    pairs.emplace(pair.sequence, pair.group);
  }
  EXPECT_EQ(pairs.size(), 24U);
}

TEST(RowsAsHeads, are_of_one_key_head) {
  const AttentionSpec spec = with_rows_as_heads(spec_of(2, 1, 1, 64));
  EXPECT_EQ(spec.batch, 2);
  EXPECT_EQ(spec.heads, 64);
  EXPECT_EQ(spec.kv_heads, 1);
  EXPECT_EQ(spec.panels.front().rows, 1);
  EXPECT_EQ(spec.panels.front().queries.strides.head, 128);
  EXPECT_EQ(spec.panels.front().lse.strides.head, 1);
  EXPECT_EQ(cut_heads(spec), 4);
}

// [batch, heads, rows, 128]: the rows of a head lie one after the other.
TEST(RowsAsHeads, follow_each_other_from_key_head_to_key_head) {
  AttentionSpec spec = spec_of(2, 4, 4, 8);
  EXPECT_EQ(with_rows_as_heads(spec).heads, 4) << "rows of all heads alternate";
  AttentionPanelSpec& panel = spec.panels.front();
  for (HeadTensor* const tensor : {&panel.queries, &panel.output, &panel.lse}) {
    tensor->strides.row /= 4;
    tensor->strides.head = 8 * tensor->strides.row;
  }
  const AttentionSpec turned = with_rows_as_heads(spec);
  EXPECT_EQ(turned.heads, 32);
  EXPECT_EQ(turned.kv_heads, 4);
  spec.causal = true;
  EXPECT_EQ(with_rows_as_heads(spec).heads, 4) << "rows are positions";
}

// Where there is one key head, loops name sequences as heads.
TEST(RowsAsHeads, are_of_sequences_whose_keys_lie_apart) {
  AttentionSpec spec = spec_of(1, 3, 3, 64);
  AttentionPanelSpec& panel = spec.panels.front();
  for (HeadTensor* const tensor : {&panel.queries, &panel.output, &panel.lse}) {
    tensor->strides.row /= 3;
    tensor->strides.head = 64 * tensor->strides.row;
  }
  AttentionChunkSpec& chunk = spec.chunks.front();
  chunk.keys.strides = chunk.values.strides = {.batch = 0, .row = 128, .head = 8192 * 128};
  const AttentionSpec turned = with_rows_as_heads(spec);
  EXPECT_EQ(turned.batch, 3);
  EXPECT_EQ(turned.heads, 64);
  EXPECT_EQ(turned.kv_heads, 1);
  EXPECT_EQ(turned.panels.front().queries.strides.batch, 64 * 128);
  EXPECT_EQ(turned.chunks.front().keys.strides.batch, 8192 * 128);
}

TEST(DecodeBunches, host_and_kernel_agree) {
  for (int parts = 1; parts <= 1024; ++parts) {
    EXPECT_EQ(device::parts_of_bunch(parts), bunch_of(parts)) << parts;
  }
}

}  // namespace decode_cuts_test
}  // namespace harpe::cuda
