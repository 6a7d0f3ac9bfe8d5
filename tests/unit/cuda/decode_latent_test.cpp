#include <gtest/gtest.h>

#include "exec/cuda/kernels/attention/decode.h"
#include "exec/cuda/kernels/attention/decode_variants.h"

// Attention of few queries over keys that hold their values.
namespace harpe::cuda {
namespace decode_latent_test {

constexpr int kBlocks = 132;

HeadTensor tensor(DeviceAddress address, std::int64_t rows, std::int64_t heads,
                  std::int64_t columns) {
  return {.address = address,
          .strides = {.batch = rows * heads * columns, .row = heads * columns, .head = columns}};
}

// [batch, rows, heads, 576] and [batch, keys, 1, 576], of which the first 512 are the values.
AttentionSpec spec_of(std::int64_t batch, std::int64_t heads, std::int64_t rows = 1,
                      std::int64_t keys = 8192) {
  AttentionSpec spec{.batch = batch,
                     .heads = heads,
                     .kv_heads = 1,
                     .query_dim = 576,
                     .value_dim = 512,
                     .to_state = true};
  spec.panels = {{.rows = rows,
                  .queries = tensor(0x10000, rows, heads, 576),
                  .output = tensor(0x1000000, rows, heads, 512),
                  .lse = tensor(0x2000000, rows, heads, 1)}};
  const HeadTensor cache = tensor(0x10000000, keys, 1, 576);
  spec.chunks = {{.rows = keys, .keys = cache, .values = cache}};
  return spec;
}

TEST(DecodeLatent, takes_values_that_begin_the_keys) {
  EXPECT_TRUE(can_decode(spec_of(2, 16)));
  AttentionSpec spec = spec_of(2, 16);
  spec.chunks.front().values.address += 64;
  EXPECT_FALSE(can_decode(spec)) << "the last elements";
  spec = spec_of(2, 16);
  spec.chunks.front().values = tensor(0x20000000, 8192, 1, 512);
  EXPECT_FALSE(can_decode(spec)) << "a cache of values";
  spec = spec_of(2, 16);
  spec.value_dim = 448;
  EXPECT_FALSE(can_decode(spec));
  spec = spec_of(2, 16);
  spec.query_dim = spec.value_dim = 512;
  EXPECT_FALSE(can_decode(spec));
}

TEST(DecodeLatent, has_groups_of_thirty_two_queries) {
  const auto cuts = [](std::int64_t heads, std::int64_t rows) {
    const AttentionSpec spec = spec_of(2, heads, rows);
    return can_decode(spec) ? cut_heads(spec) : 0;
  };
  EXPECT_EQ(cuts(1, 1), 1);
  EXPECT_EQ(cuts(32, 1), 1);
  EXPECT_EQ(cuts(16, 2), 1);
  EXPECT_EQ(cuts(128, 1), 4);
  EXPECT_EQ(cuts(128, 2), 8);
  EXPECT_EQ(cuts(256, 1), 8);
  EXPECT_EQ(cuts(512, 1), 0);
  for (const std::int64_t heads : {1, 32, 128}) {
    EXPECT_EQ(decode_config(spec_of(2, heads)).columns, 32);
  }
}

TEST(DecodeLatent, is_never_faster_in_parts) {
  EXPECT_FALSE(is_faster_in_parts(spec_of(64, 128, 1, 65536)));
}

TEST(DecodeLatent, has_fewer_shares_where_states_are_many) {
  EXPECT_EQ(choose_shares(spec_of(132, 16), kBlocks), kBlocks);
  EXPECT_EQ(choose_shares(spec_of(32, 128), kBlocks), kBlocks);
  EXPECT_LT(choose_shares(spec_of(1, 16), kBlocks), 64) << "each joins 64 KiB";
  for (const std::int64_t batch : {1, 3, 8}) {
    EXPECT_EQ(choose_shares(spec_of(batch, 128), kBlocks) % 4, 0) << batch;
  }
}

TEST(DecodeLatent, reads_tiles_of_keys_alone) {
  AttentionSpec spec = spec_of(3, 128);
  spec.shares = 128;
  ASSERT_TRUE(check(spec, kBlocks).ok()) << render(check(spec, kBlocks).error());
  const DecodePlan plan = plan_decode(spec);
  EXPECT_EQ(plan.pairs, 12);
  EXPECT_EQ(plan.args.group.number, 32);
  EXPECT_EQ(plan.args.tiles.number, 128);
  EXPECT_EQ(plan.args.box_rows, 64);
  EXPECT_EQ(plan.args.boxes, 1);
  EXPECT_EQ(plan.args.query_strides.head, spec.panels.front().queries.strides.head);
  EXPECT_EQ(plan.maps[0].sizes[0], 576);
  EXPECT_EQ(plan.maps[0].box, (std::array<int, 4>{64, 1, 64, 1}));
}

TEST(DecodeLatent, loads_boxes_within_pages) {
  const auto boxes = [](std::int64_t page) {
    AttentionSpec spec = spec_of(2, 16);
    spec.tables = KeyTables{.pages = 0x5000, .page_stride = 1, .page_count = 8, .page = page};
    spec.shares = 1;
    EXPECT_TRUE(can_decode(spec));
    const device::DecodeArgs args = plan_decode(spec).args;
    EXPECT_EQ(args.boxes * args.box_rows, 64);
    return args.boxes;
  };
  EXPECT_EQ(boxes(8), 8);
  EXPECT_EQ(boxes(48), 4);
  EXPECT_EQ(boxes(64), 1);
  EXPECT_EQ(boxes(256), 1);
}

TEST(DecodeLatent, is_eight_kernels) {
  int count = 0;
  for (const device::DecodeConfig& config : decode_configs()) {
    if (!values_in_keys(config)) continue;
    ++count;
    EXPECT_EQ(config.slots, 2);
    EXPECT_LE(shared_bytes(config), device::kSharedMemoryLimit);
  }
  EXPECT_EQ(count, 8);
}

}  // namespace decode_latent_test
}  // namespace harpe::cuda
