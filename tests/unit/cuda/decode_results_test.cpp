#include <gtest/gtest.h>

#include <array>

#include "exec/cuda/kernels/attention/decode.h"

// Attention of few queries, whose heads go to several ranks.
namespace harpe::cuda {
namespace decode_results_test {

constexpr int kBlocks = 132;

HeadTensor dense(DeviceAddress address, std::int64_t heads, std::int64_t columns) {
  return {.address = address,
          .strides = {.batch = heads * columns, .row = heads * columns, .head = columns}};
}

// `heads` heads, equally many in each result; the last result is this rank's own.
AttentionSpec spec_of(std::int64_t batch, std::int64_t heads, std::int64_t kv_heads, int results) {
  constexpr std::int64_t kKeys = 4096;
  constexpr std::int64_t kColumns = 128;
  AttentionSpec spec;
  spec.batch = batch;
  spec.heads = heads;
  spec.kv_heads = kv_heads;
  spec.query_dim = spec.value_dim = kColumns;
  spec.panels = {{.rows = 1, .queries = dense(0x1000, heads, kColumns)}};
  spec.chunks = {{.rows = kKeys}};
  for (HeadTensor* const each : {&spec.chunks.front().keys, &spec.chunks.front().values}) {
    *each = {
        .address = 0x100000,
        .strides = {
            .batch = kKeys * kv_heads * kColumns, .row = kv_heads * kColumns, .head = kColumns}};
  }
  spec.shares = 64;
  const std::int64_t own = heads / results;
  for (int i = 0; i < results; ++i) {
    const auto at = static_cast<DeviceAddress>(0x10000000 * (i + 1));
    AttentionResultSpec& result = spec.results.emplace_back(AttentionResultSpec{
        .first_head = i * own, .output = dense(at, own, kColumns), .lse = dense(at + 64, own, 1)});
    if (i + 1 == results) break;
    result.fused_store = static_cast<int>(spec.fused_stores.size());
    spec.fused_stores.emplace_back();
  }
  for (int from = 0; from + 1 < results; ++from) {
    const auto at = static_cast<DeviceAddress>(0x1000000 * (from + 1));
    spec.results.back().addends.push_back(
        {.output = dense(at, own, kColumns), .lse = dense(at + 64, own, 1)});
  }
  return spec;
}

using Counts = std::vector<std::uint32_t>;

TEST(DecodeResults, count_pairs_of_a_sequence_and_a_key_head) {
  EXPECT_EQ(count_stores(spec_of(3, 64, 8, 4)), (Counts{6, 6, 6})) << "two key heads each";
  EXPECT_EQ(count_stores(spec_of(3, 8, 1, 4)), (Counts{3, 3, 3})) << "parts of one key head";
  EXPECT_EQ(count_stores(spec_of(1, 12, 3, 2)), (Counts{2})) << "one and a half, so both of two";
}

TEST(DecodeResults, count_pairs_of_a_sequence_and_a_head_group) {
  EXPECT_EQ(count_stores(spec_of(3, 64, 1, 4)), (Counts{3, 3, 3})) << "a group of 16 each";
  EXPECT_EQ(count_stores(spec_of(3, 64, 1, 2)), (Counts{6})) << "two of four groups";
  EXPECT_EQ(count_stores(spec_of(2, 96, 4, 8)), (Counts{2, 2, 2, 2, 2, 2, 2})) << "12 of 12";
  EXPECT_EQ(count_stores(spec_of(1, 48, 1, 4)), (Counts{1, 2, 2})) << "12 of groups of 16";
  EXPECT_EQ(count_stores(spec_of(5, 64, 4, 8)), (Counts{5, 5, 5, 5, 5, 5, 5})) << "half a group";
}

TEST(DecodeGroups, read_few_keys_again_but_many_in_parts) {
  EXPECT_FALSE(is_faster_in_parts(spec_of(8, 64, 1, 1))) << "four groups, 17 MB";
  EXPECT_TRUE(is_faster_in_parts(spec_of(64, 64, 1, 1))) << "four groups, 134 MB";
  EXPECT_FALSE(is_faster_in_parts(spec_of(64, 32, 1, 1))) << "two groups, 134 MB";
  EXPECT_FALSE(is_faster_in_parts(spec_of(512, 16, 1, 1))) << "one group, 1 GB";
}

TEST(DecodeResults, of_one_store_are_counted_together) {
  AttentionSpec spec = spec_of(3, 64, 8, 4);
  spec.results[1].fused_store = 0;
  EXPECT_EQ(count_stores(spec), (Counts{12, 0, 6}));
}

TEST(DecodeResults, are_the_arguments_of_one_kernel) {
  const AttentionSpec spec = spec_of(2, 64, 8, 4);
  ASSERT_TRUE(check(spec, kBlocks).ok()) << render(check(spec, kBlocks).error());
  EXPECT_TRUE(decode_config(spec).exchanges);
  const device::DecodeExchange exchange = plan_decode(spec).exchange;
  EXPECT_EQ(exchange.heads.number, 16);
  EXPECT_EQ(exchange.result_count, 4);
  EXPECT_EQ(exchange.addend_count, 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(exchange.results[i].addends, 0) << i;
  EXPECT_EQ(exchange.results[3].first_addend, 0);
  EXPECT_EQ(exchange.results[3].addends, 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto at = reinterpret_cast<std::uintptr_t>(exchange.addends[i].output);
    EXPECT_EQ(at, spec.results.back().addends[i].output.address);
  }
}

TEST(DecodeResults, are_for_the_kernel_of_few_queries_alone) {
  AttentionSpec spec = spec_of(2, 64, 8, 4);
  spec.shares = 0;
  EXPECT_FALSE(check(spec, kBlocks).ok());
}

TEST(DecodeResults, are_at_most_eight) {
  EXPECT_TRUE(check(spec_of(2, 64, 8, 8), kBlocks).ok());
  EXPECT_FALSE(check(spec_of(2, 64, 8, 16), kBlocks).ok());
}

}  // namespace decode_results_test
}  // namespace harpe::cuda
