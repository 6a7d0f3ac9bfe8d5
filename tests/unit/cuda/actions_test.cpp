#include <gtest/gtest.h>

#include <array>

#include "exec/cuda/actions/launch_spec.h"

namespace harpe::cuda {
namespace {

using actions::Action;
using actions::Rows;

const LaunchChoice kCompute{.nest = "nest", .buffer = "x"};
const LaunchChoice kCopy{.nest = "nest", .buffer = "x", .by_copy_engine = true};

std::byte* at(std::uint64_t address) { return reinterpret_cast<std::byte*>(address); }

std::vector<LaunchSpec> plan_of(const Action& action, const LaunchChoice& choice = kCompute) {
  const auto launches = plan_launches(choice, action);
  EXPECT_TRUE(launches.ok()) << render(launches.error());
  return launches.ok() ? *launches : std::vector<LaunchSpec>{};
}

actions::Assign assign(DType to, DType from, const std::vector<std::int64_t>& lengths,
                       const std::vector<std::int64_t>& to_strides,
                       const std::vector<std::int64_t>& from_strides) {
  const std::vector<std::int64_t> strides[] = {to_strides, from_strides};
  actions::Assign result;
  result.to.data = at(4096);
  result.to.dtype = to;
  result.from.data = at(1 << 20);
  result.from.dtype = from;
  result.rows = Rows(lengths, strides);
  return result;
}

TEST(PlanLaunches, moves_the_widest_words_that_fit) {
  const auto wide = plan_of(assign(DType::BF16, DType::BF16, {3, 64}, {128, 1}, {64, 1}));
  ASSERT_EQ(wide.size(), 1U);
  const auto& args = std::get<device::MoveArgs>(std::get<PlainLaunch>(wide[0]).args);
  EXPECT_EQ(args.word_bytes, 16);
  EXPECT_EQ(args.words, 3 * 64 * 2 / 16);
  const auto odd = plan_of(assign(DType::BF16, DType::BF16, {3, 63}, {63, 1}, {64, 1}));
  EXPECT_EQ(std::get<device::MoveArgs>(std::get<PlainLaunch>(odd[0]).args).word_bytes, 2);
}

TEST(PlanLaunches, gives_the_copy_engine_what_it_can_take) {
  const auto dense = plan_of(assign(DType::F32, DType::F32, {8, 64}, {64, 1}, {64, 1}), kCopy);
  EXPECT_EQ(std::get<CopyLaunch>(dense[0]).bytes, 8 * 64 * 4);
  EXPECT_EQ(std::get<CopyLaunch>(dense[0]).rows, 1);
  const auto pitched = plan_of(assign(DType::F32, DType::F32, {8, 64}, {64, 1}, {80, 1}), kCopy);
  const auto& copy = std::get<CopyLaunch>(pitched[0]);
  EXPECT_EQ(copy.rows, 8);
  EXPECT_EQ(copy.to_pitch, 256);
  EXPECT_EQ(copy.from_pitch, 320);
  const auto turned = plan_of(assign(DType::F32, DType::F32, {8, 64}, {64, 1}, {1, 8}), kCopy);
  EXPECT_TRUE(std::holds_alternative<PlainLaunch>(turned[0]));
  const auto rounded = plan_of(assign(DType::BF16, DType::F32, {8, 64}, {64, 1}, {64, 1}), kCopy);
  EXPECT_TRUE(std::holds_alternative<PlainLaunch>(rounded[0]));
}

// Nine axes of two, each with room behind it.
actions::Assign deep(std::int64_t length, std::size_t axes) {
  std::vector<std::int64_t> strides(axes);
  std::int64_t stride = 1;
  for (std::size_t axis = axes; axis-- > 0; stride *= length + 1) strides[axis] = stride;
  return assign(DType::F32, DType::F32, std::vector<std::int64_t>(axes, length), strides, strides);
}

TEST(PlanLaunches, goes_through_the_outermost_loops_itself) {
  EXPECT_EQ(plan_of(deep(2, 7)).size(), 1U);
  EXPECT_EQ(plan_of(deep(2, 9)).size(), 4U);
  const auto refused = plan_launches(kCompute, deep(20, 11));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, DiagCode::G075);
}

actions::Multiply product(DType dtype, std::int64_t m, std::int64_t n, std::int64_t k) {
  actions::Multiply result;
  result.first = {.m = m,
                  .n = n,
                  .k = k,
                  .a = {.data = at(4096), .dtype = dtype, .row_stride = k, .column_stride = 1},
                  .b = {.data = at(1 << 20), .dtype = dtype, .row_stride = n, .column_stride = 1},
                  .c = at(1 << 24),
                  .c_row_stride = n};
  return result;
}

TEST(PlanLaunches, multiplies_on_tensor_cores_where_operands_suit) {
  const auto is_fast = [](const actions::Multiply& multiply) {
    return std::holds_alternative<GemmSpec>(plan_of(multiply)[0]);
  };
  EXPECT_TRUE(is_fast(product(DType::BF16, 256, 512, 64)));
  EXPECT_TRUE(is_fast(product(DType::F16, 1, 512, 64)));
  EXPECT_FALSE(is_fast(product(DType::F32, 256, 512, 64)));
  EXPECT_FALSE(is_fast(product(DType::BF16, 256, 512, 63)));
  actions::Multiply turned = product(DType::BF16, 256, 512, 64);
  turned.first.a.row_stride = 1;
  turned.first.a.column_stride = 256;
  EXPECT_FALSE(is_fast(turned));
}

TEST(PlanLaunches, sums_products_in_order) {
  actions::Multiply sums = product(DType::BF16, 64, 64, 64);
  sums.loops.push_back({.length = 3, .bytes = {8192, 8192, 0}, .reduces = true});
  const auto launches = plan_of(sums);
  ASSERT_EQ(launches.size(), 3U);
  EXPECT_FALSE(std::get<GemmSpec>(launches[0]).add);
  EXPECT_TRUE(std::get<GemmSpec>(launches[1]).add);
  sums.first.a.dtype = sums.first.b.dtype = DType::F32;
  const auto plain = plan_of(sums);
  ASSERT_EQ(plain.size(), 1U);
  EXPECT_EQ(std::get<device::PlainGemmArgs>(std::get<PlainLaunch>(plain[0]).args).sums, 3);
}

// [batch 2, position, (key heads 4, group 2), 128]
actions::Attend attention(std::int64_t queries, std::int64_t keys, const Visibility& visible) {
  actions::Attend result;
  const auto matrix = [](std::uint64_t address, std::int64_t stride) {
    return MatrixView{
        .data = at(address), .dtype = DType::BF16, .row_stride = stride, .column_stride = 1};
  };
  result.first = {.queries = queries,
                  .keys = keys,
                  .head_dim = 128,
                  .value_dim = 128,
                  .q = matrix(1 << 20, 1024),
                  .k = matrix(1 << 22, 512),
                  .v = matrix(1 << 23, 512),
                  .o = at(1 << 24),
                  .o_row_stride = 1024,
                  .lse = at(1 << 26),
                  .lse_stride = 1,
                  .scale = 0.125,
                  .visible = visible};
  const std::int64_t rows = queries;
  result.loops.push_back(
      {.length = 2,
       .bytes = {rows * 2048, keys * 1024, keys * 1024, rows * 4096, rows * 32, 0, 0, 0}});
  result.loops.push_back({.length = 4, .bytes = {512, 256, 256, 1024, rows * 8, 0, 0, 0}});
  result.loops.push_back({.length = 2, .bytes = {256, 0, 0, 512, rows * 4, 0, 0, 0}});
  return result;
}

TEST(PlanLaunches, recognises_batches_heads_and_groups) {
  const auto launches = plan_of(attention(256, 384, {}));
  ASSERT_EQ(launches.size(), 1U);
  const auto& spec = std::get<AttentionSpec>(launches[0]);
  EXPECT_EQ(spec.batch, 2);
  EXPECT_EQ(spec.heads, 8);
  EXPECT_EQ(spec.kv_heads, 4);
  EXPECT_TRUE(spec.to_state);
  EXPECT_FALSE(spec.causal);
  EXPECT_EQ(spec.panels[0].queries.strides.head, 128);
  EXPECT_EQ(spec.chunks[0].keys.strides.head, 128);
  EXPECT_EQ(spec.panels[0].lse.strides.head, 256);
}

TEST(PlanLaunches, turns_bands_into_positions) {
  // For every pair of query and key: seen by positions iff seen by the band.
  for (const std::int64_t low : {-Visibility::kUnbounded, std::int64_t{-7}, std::int64_t{2}}) {
    for (const std::int64_t high : {std::int64_t{-3}, std::int64_t{4}, Visibility::kUnbounded}) {
      if (low > high) continue;
      const Visibility visible{.low = low, .high = high, .prefix = 0};
      const auto launches = plan_of(attention(16, 24, visible));
      ASSERT_EQ(launches.size(), 1U);
      const auto& spec = std::get<AttentionSpec>(launches[0]);
      for (std::int64_t query = 0; query < 16; ++query) {
        for (std::int64_t key = 0; key < 24; ++key) {
          const std::int64_t p = spec.panels[0].position + query;
          const std::int64_t position = spec.chunks[0].position + key;
          const bool seen =
              (!spec.causal || position <= p) && (spec.window == 0 || position > p - spec.window);
          EXPECT_EQ(seen, low <= key - query && key - query <= high);
        }
      }
    }
  }
  const auto prefix = plan_of(attention(16, 24, {.low = 0, .high = 0, .prefix = 5}));
  EXPECT_TRUE(std::holds_alternative<PlainLaunch>(prefix[0]));
}

TEST(PlanLaunches, refuses_routing_and_masks_on_data) {
  const auto code = [](const Action& action) {
    const auto launches = plan_launches(kCompute, action);
    return launches.ok() ? DiagCode::G005 : launches.error().code;
  };
  EXPECT_EQ(code(actions::GatherRows{}), DiagCode::G072);
  std::int32_t used = 0;
  actions::Multiply ragged = product(DType::BF16, 64, 64, 64);
  ragged.used.rows = &used;
  EXPECT_EQ(code(ragged), DiagCode::G072);
  actions::Attend masked = attention(64, 64, {});
  masked.first.tables.length.data = &used;
  EXPECT_EQ(code(masked), DiagCode::G072);
}

}  // namespace
}  // namespace harpe::cuda
