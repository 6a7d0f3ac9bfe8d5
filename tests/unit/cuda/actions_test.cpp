#include <gtest/gtest.h>

#include <array>

#include "exec/cuda/kernels/attention/attention.h"
#include "exec/cuda/kernels/attention/decode.h"
#include "exec/cuda/kernels/backward/backward.h"
#include "exec/cuda/kernels/copy_engine/copy_launch.h"
#include "exec/cuda/kernels/gemm/gemm.h"
#include "exec/cuda/kernels/plain/plain_launch.h"
#include "exec/cuda/kernels/plain/plain_operands.h"
#include "exec/cuda/kernels/plan_launches.h"

namespace harpe::cuda {
namespace actions_test {

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
  const auto& args = std::get<device::MoveArgs>(wide[0].get<PlainLaunch>().args);
  EXPECT_EQ(args.word_bytes, 16);
  EXPECT_EQ(args.words, 3 * 64 * 2 / 16);
  const auto odd = plan_of(assign(DType::BF16, DType::BF16, {3, 63}, {63, 1}, {64, 1}));
  EXPECT_EQ(std::get<device::MoveArgs>(odd[0].get<PlainLaunch>().args).word_bytes, 2);
}

TEST(PlanLaunches, gives_the_copy_engine_what_it_can_take) {
  const auto dense = plan_of(assign(DType::F32, DType::F32, {8, 64}, {64, 1}, {64, 1}), kCopy);
  EXPECT_EQ(dense[0].get<CopyLaunch>().bytes, 8 * 64 * 4);
  EXPECT_EQ(dense[0].get<CopyLaunch>().rows, 1);
  const auto pitched = plan_of(assign(DType::F32, DType::F32, {8, 64}, {64, 1}, {80, 1}), kCopy);
  const auto& copy = pitched[0].get<CopyLaunch>();
  EXPECT_EQ(copy.rows, 8);
  EXPECT_EQ(copy.to_pitch, 256);
  EXPECT_EQ(copy.from_pitch, 320);
  const auto turned = plan_of(assign(DType::F32, DType::F32, {8, 64}, {64, 1}, {1, 8}), kCopy);
  EXPECT_TRUE(turned[0].is<PlainLaunch>());
  const auto rounded = plan_of(assign(DType::BF16, DType::F32, {8, 64}, {64, 1}, {64, 1}), kCopy);
  EXPECT_TRUE(rounded[0].is<PlainLaunch>());
}

// Axes of `length` with gaps behind each.
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
    return plan_of(multiply)[0].is<GemmSpec>();
  };
  EXPECT_TRUE(is_fast(product(DType::BF16, 256, 512, 64)));
  EXPECT_TRUE(is_fast(product(DType::F16, 1, 512, 64)));
  EXPECT_FALSE(is_fast(product(DType::F32, 256, 512, 64)));
  EXPECT_FALSE(is_fast(product(DType::BF16, 256, 512, 63)));
  actions::Multiply turned = product(DType::BF16, 256, 512, 64);
  turned.first.a.row_stride = 1;
  turned.first.a.column_stride = 256;
  EXPECT_TRUE(is_fast(turned));
  EXPECT_TRUE(plan_of(turned)[0].get<GemmSpec>().m_major);
  turned.first.a.column_stride = 260;  // the copy engine cannot read rows of this stride
  EXPECT_FALSE(is_fast(turned));
}

TEST(PlanLaunches, sums_products_in_order) {
  actions::Multiply sums = product(DType::BF16, 64, 64, 64);
  sums.loops.push_back({.length = 3, .bytes = {8192, 8192, 0}, .reduces = true});
  const auto launches = plan_of(sums);
  ASSERT_EQ(launches.size(), 3U);
  EXPECT_FALSE(launches[0].get<GemmSpec>().add);
  EXPECT_TRUE(launches[1].get<GemmSpec>().add);
  sums.first.a.dtype = sums.first.b.dtype = DType::F32;
  const auto plain = plan_of(sums);
  ASSERT_EQ(plain.size(), 1U);
  EXPECT_EQ(std::get<device::PlainGemmArgs>(plain[0].get<PlainLaunch>().args).sums, 3);
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
  const auto& spec = launches[0].get<AttentionSpec>();
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
  // A query sees a key by positions exactly if it does by the band.
  for (const std::int64_t low : {-Visibility::kUnbounded, std::int64_t{-7}, std::int64_t{2}}) {
    for (const std::int64_t high : {std::int64_t{-3}, std::int64_t{4}, Visibility::kUnbounded}) {
      if (low > high) continue;
      const Visibility visible{.low = low, .high = high, .prefix = 0};
      const auto launches = plan_of(attention(16, 24, visible));
      ASSERT_EQ(launches.size(), 1U);
      const auto& spec = launches[0].get<AttentionSpec>();
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
  EXPECT_TRUE(prefix[0].is<PlainLaunch>());
}

TEST(PlanLaunches, cuts_keys_of_few_queries_into_shares) {
  const auto launches = plan_of(attention(1, 8192, {}));
  ASSERT_EQ(launches.size(), 1U);
  const auto& spec = launches[0].get<AttentionSpec>();
  EXPECT_EQ(spec.shares, 128);  // 512 tiles of keys, four per share; pairs end at shares
  EXPECT_EQ(spec.heads, 8);
  EXPECT_EQ(spec.panels[0].rows, 1);
  EXPECT_EQ(launches[0]->choose(132), "keys in 128 shares");
  EXPECT_TRUE(launches[0]->can_be_joined(false));
  EXPECT_FALSE(launches[0]->can_be_joined(true));
  EXPECT_EQ(plan_of(attention(17, 8192, {}))[0].get<AttentionSpec>().shares, 0);
  const Visibility causal{.high = 100};
  EXPECT_EQ(plan_of(attention(1, 8192, causal))[0].get<AttentionSpec>().shares, 0);
  actions::Attend carried = attention(1, 8192, {});
  carried.first.carry = true;
  EXPECT_EQ(plan_of(carried)[0].get<AttentionSpec>().shares, 0);
}

// The length of each batch entry and, if `page` > 0, pages in one storage for all entries.
actions::Attend cached(std::int64_t keys, std::int64_t page) {
  static std::int32_t table = 0;
  actions::Attend action = attention(1, keys, {});
  action.first.tables.length = {.data = &table, .stride = 1};
  action.first.tables.first_key = 512;
  actions::Loop<kAllAttendOperands>& batch = action.loops.front();
  batch.bytes[kAttendOperands + 1] = 4;
  if (page == 0) return action;
  action.first.tables.pages = {.data = &table, .stride = 1};
  action.first.tables.page = page;
  action.first.tables.page_count = 24;
  batch.bytes[kAttendOperands + 2] = 24 * 4;
  batch.bytes[kK] = batch.bytes[kV] = 0;
  return action;
}

TEST(PlanLaunches, reads_lengths_and_pages_of_few_queries) {
  const auto ragged = plan_of(cached(2048, 0));
  ASSERT_TRUE(ragged[0].is<AttentionSpec>());
  const auto& by_length = ragged[0].get<AttentionSpec>();
  EXPECT_EQ(by_length.batch, 2);
  EXPECT_EQ(by_length.heads, 8);
  EXPECT_EQ(by_length.kv_heads, 4);
  EXPECT_EQ(by_length.tables->length_stride, 1);
  EXPECT_EQ(by_length.tables->first_key, 512);
  EXPECT_EQ(by_length.panels[0].queries.strides.batch, 1024);
  EXPECT_EQ(ragged[0]->arrays().panels.front().reads.size(), 2U);
  const auto paged = plan_of(cached(2048, 16));
  ASSERT_TRUE(paged[0].is<AttentionSpec>());
  const auto& by_page = paged[0].get<AttentionSpec>();
  EXPECT_EQ(by_page.batch, 2);
  EXPECT_EQ(by_page.tables->batch_stride, 24);
  EXPECT_EQ(by_page.chunks[0].keys.strides.batch, 0);
  const StridedArray pages = paged[0]->arrays().panels.front().reads.back();
  EXPECT_EQ(pages.element_bytes, 4);
  EXPECT_EQ(pages.extents, (std::vector<StridedArray::Extent>{{2, 24}, {24, 1}}));
  EXPECT_EQ(plan_decode(by_page).args.batch_step, 0);
  EXPECT_EQ(plan_decode(by_page).args.box_rows, 16);
  EXPECT_TRUE(plan_of(cached(2048, 12))[0].is<PlainLaunch>());  // swizzled boxes have 8 rows
}

TEST(PlanLaunches, names_shares_as_they_are_read) {
  EXPECT_EQ(parse_shares(print_shares(132, 1), 1), 132);
  EXPECT_EQ(print_shares(132, 1), "keys in 132 shares");
  EXPECT_EQ(print_shares(128, 4), "keys in 128 shares heads in 4 groups");
  EXPECT_EQ(parse_shares(print_shares(128, 4), 4), 128);
  EXPECT_EQ(parse_shares(print_shares(128, 4), 2), std::nullopt);
  for (const char* text : {"keys in  shares", "keys in 07 shares", "keys cut 8", "keys in 8 share",
                           "keys in 8 shares heads in 2 groups"}) {
    EXPECT_EQ(parse_shares(text, 1), std::nullopt) << text;
  }
}

TEST(PlanLaunches, leaves_masks_on_data_to_plain_kernels) {
  std::int32_t length = 0;
  actions::Attend masked = attention(64, 64, {});
  masked.first.tables.length.data = &length;
  for (auto& loop : masked.loops) loop.bytes[6] = loop.length == 2 && loop.bytes[1] > 0 ? 4 : 0;
  const auto launches = plan_of(masked);
  ASSERT_EQ(launches.size(), 1U);
  const auto& args = std::get<device::PlainAttentionArgs>(launches[0].get<PlainLaunch>().args);
  EXPECT_TRUE(args.tables.any);
  EXPECT_EQ(args.tables.length.data, &length);
  EXPECT_EQ(args.nest.bytes[0][6], 4);
  EXPECT_EQ(args.turns, 16);
}

// [batch 2, position, (key heads 4, group 2), 128]
actions::Differentiate gradients(std::int64_t queries, std::int64_t keys) {
  actions::Differentiate result;
  const auto matrix = [](std::uint64_t address, std::int64_t stride) {
    return MatrixView{
        .data = at(address), .dtype = DType::BF16, .row_stride = stride, .column_stride = 1};
  };
  const auto numbers = [](std::uint64_t address) {
    return RowValues{.data = at(address), .dtype = DType::F32, .stride = 1};
  };
  result.first = {.queries = queries,
                  .keys = keys,
                  .head_dim = 128,
                  .value_dim = 128,
                  .q = matrix(1 << 20, 1024),
                  .k = matrix(1 << 22, 512),
                  .v = matrix(1 << 23, 512),
                  .d_o = matrix(1 << 24, 1024),
                  .lse = numbers(1 << 25),
                  .delta = numbers(1 << 26),
                  .dq = {.data = at(1 << 27), .row_stride = 1024},
                  .dk = {.data = at(1 << 28), .row_stride = 512, .carry = true},
                  .dv = {.data = at(1 << 29), .row_stride = 512},
                  .scale = 0.125};
  const std::int64_t q = queries * 2048;
  const std::int64_t k = keys * 1024;
  const std::int64_t l = queries * 4;
  result.loops = {{.length = 2, .bytes = {q, k, k, q, 8 * l, 8 * l, 2 * q, 2 * k, 2 * k}},
                  {.length = 4, .bytes = {512, 256, 256, 512, 2 * l, 2 * l, 1024, 512, 512}},
                  {.length = 2, .bytes = {256, 0, 0, 256, l, l, 512, 0, 0}, .reduces = true}};
  return result;
}

TEST(PlanLaunches, differentiates_on_tensor_cores_where_operands_suit) {
  actions::Differentiate banded = gradients(256, 384);
  banded.first.visible = {.low = -7, .high = 9, .prefix = -3};
  const auto launches = plan_of(banded);
  ASSERT_EQ(launches.size(), 1U);
  const auto& spec = launches[0].get<BackwardSpec>();
  EXPECT_EQ(spec.batch, 2);
  EXPECT_EQ(spec.heads, 8);
  EXPECT_EQ(spec.kv_heads, 4);
  EXPECT_EQ(spec.q.strides.head, 128);
  EXPECT_EQ(spec.delta.strides.head, 256);
  EXPECT_EQ(spec.delta.strides.batch, 8 * 256);
  EXPECT_EQ(spec.dk.to.strides.head, 128);
  EXPECT_EQ(spec.dv.to.strides.batch, 384 * 512);
  EXPECT_TRUE(spec.dk.carry);
  EXPECT_FALSE(spec.dq.carry);
  EXPECT_EQ(spec.low, -7);
  EXPECT_EQ(spec.high, 9);
}

TEST(PlanLaunches, differentiates_plainly_what_tensor_cores_do_not_take) {
  const auto is_fast = [](const auto& change) {
    actions::Differentiate action = gradients(256, 384);
    change(action);
    return plan_of(action)[0].is<BackwardSpec>();
  };
  std::int32_t length = 0;
  EXPECT_TRUE(is_fast([](auto&) {}));
  EXPECT_TRUE(is_fast([](auto& one) { one.first.visible.prefix = 384; }));
  EXPECT_FALSE(is_fast([](auto& one) { one.first.visible = {.low = 0, .high = 0, .prefix = 5}; }));
  EXPECT_FALSE(is_fast([&](auto& one) { one.first.tables.length.data = &length; }));
  EXPECT_FALSE(is_fast([](auto& one) { one.first.delta.dtype = DType::F64; }));
  EXPECT_FALSE(is_fast([](auto& one) { one.first.value_dim = 64; }));
  EXPECT_FALSE(is_fast([](auto& one) { one.first.head_dim = one.first.value_dim = 96; }));
  EXPECT_FALSE(is_fast([](auto& one) { one.first.dq.row_stride = 1025; }));
  // A sum over another loop than the heads that share keys.
  EXPECT_FALSE(is_fast([](auto& one) { one.loops[0].reduces = true; }));
  EXPECT_FALSE(is_fast([](auto& one) {
    for (MatrixView* view : {&one.first.q, &one.first.k, &one.first.v, &one.first.d_o}) {
      view->dtype = DType::F16;
    }
  }));
}

TEST(PlanLaunches, keeps_the_loop_over_ragged_rows_outermost) {
  std::int32_t used = 0;
  std::int32_t result = 0;
  actions::Assign ragged = assign(DType::BF16, DType::BF16, {64}, {1}, {1});
  ragged.slots = {
      .used = {.rows = &used, .before = 3}, .capacity = 7, .strides = {64, 80}, .result = &result};
  for (const LaunchChoice& choice : {kCompute, kCopy}) {
    const auto launches = plan_of(ragged, choice);
    ASSERT_EQ(launches.size(), 1U);
    const auto& args = std::get<device::MoveArgs>(launches[0].get<PlainLaunch>().args);
    EXPECT_EQ(args.used.rows, &used);
    EXPECT_EQ(args.used.result, &result);
    EXPECT_EQ(args.used.before, 3);
    EXPECT_EQ(args.used.capacity, 7);
    EXPECT_EQ(args.words, 7 * 8);
    EXPECT_EQ(args.nest.lengths[0], 7);
  }
}

TEST(PlanLaunches, multiplies_ragged_rows_to_their_capacity_or_their_number) {
  std::int32_t used = 0;
  std::int32_t result = 0;
  actions::Multiply ragged = product(DType::BF16, 64, 64, 64);
  ragged.used.rows = &used;
  ragged.result = &result;
  ragged.used.taken = 0.25;
  const auto fast = plan_of(ragged);
  ASSERT_EQ(fast.size(), 1U);
  const GemmPanelSpec& group = fast[0].get<GemmSpec>().panels[0];
  EXPECT_EQ(group.rows, 64);
  EXPECT_EQ(group.likely_rows, 16);
  EXPECT_EQ(group.used.rows, &used);
  EXPECT_EQ(group.used.result, &result);
  // The kernel that reads the number of rows cannot store rows of 63 elements.
  ragged.first.n = 63;
  const auto all = plan_of(ragged);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].get<GemmSpec>().panels[0].used.rows, nullptr);
  const auto& number = std::get<device::MoveArgs>(all[1].get<PlainLaunch>().args);
  EXPECT_EQ(number.to, &result);
  EXPECT_EQ(number.from, &used);
  ragged.first.a.dtype = ragged.first.b.dtype = DType::F32;
  const auto plain = plan_of(ragged);
  ASSERT_EQ(plain.size(), 1U);
  const auto& args = std::get<device::PlainGemmArgs>(plain[0].get<PlainLaunch>().args);
  EXPECT_EQ(args.used.rows, &used);
  EXPECT_EQ(args.used.result, &result);
}

actions::SlabWalk walk_of(std::int64_t tokens, std::int64_t choices, std::size_t experts) {
  actions::SlabWalk walk;
  walk.choices = choices;
  walk.runs.resize(2);
  for (actions::TokenRun& run : walk.runs) {
    run.tokens = tokens / 2;
    run.rows = at(1 << 20);
    run.row_stride = 512;
    run.row_dtype = DType::BF16;
  }
  walk.slots.resize(experts);
  walk.slots.back().push_back(
      {.before = 0, .slots = tokens, .data = at(1 << 22), .stride = 512, .dtype = DType::BF16});
  return walk;
}

TEST(PlanLaunches, follows_a_route_in_one_launch) {
  const std::vector<std::int64_t> strides[] = {{1}, {1}};
  const Rows row(std::vector<std::int64_t>{256}, strides);
  const auto gathered =
      plan_of(actions::GatherRows{.walk = walk_of(512, 4, 16), .features = row, .pads = true});
  ASSERT_EQ(gathered.size(), 1U);
  const auto& gather = gathered[0].get<PlainLaunch>();
  const auto& args = std::get<device::RouteArgs>(gather.args);
  EXPECT_EQ(args.word_bytes, 16);
  EXPECT_EQ(args.turns, 256 * 2 / 16);
  EXPECT_TRUE(args.pads);
  EXPECT_EQ(args.tokens, 512);
  EXPECT_EQ(gather.blocks * args.tokens_of_block, 512);
  const auto* const runs = reinterpret_cast<const device::RouteRun*>(gather.table.data());
  EXPECT_EQ(runs[1].first, 256);
  const auto* const firsts =
      reinterpret_cast<const std::int32_t*>(gather.table.data() + args.first_places_at);
  EXPECT_EQ(firsts[15], 0);
  EXPECT_EQ(firsts[16], 1);
  actions::CombineRows combine{.walk = walk_of(512, 4, 16), .features = row};
  for (actions::TokenRun& run : combine.walk.runs) {
    run.row_dtype = DType::F32;
    run.weights = at(1 << 23);
  }
  const auto combined = plan_of(combine);
  ASSERT_EQ(combined.size(), 1U);
  EXPECT_TRUE(std::get<device::RouteArgs>(combined[0].get<PlainLaunch>().args).vectors);
  // The kernel rounds its own results, unless it has to add to existing ones.
  for (actions::TokenRun& run : combine.walk.runs) run.row_dtype = DType::BF16;
  const auto rounded = plan_of(combine);
  ASSERT_EQ(rounded.size(), 1U);
  const auto& sums = std::get<device::RouteArgs>(rounded[0].get<PlainLaunch>().args);
  EXPECT_EQ(sums.row_number, device::Number::BF16);
  EXPECT_TRUE(sums.vectors);
  combine.walk.runs[1].accumulate = true;
  EXPECT_EQ(plan_launches(kCompute, combine).error().code, DiagCode::G072);
}

TEST(PlanLaunches, refuses_routes_beyond_a_blocks_memory) {
  const auto code = [](const Action& action) {
    const auto launches = plan_launches(kCompute, action);
    return launches.ok() ? DiagCode::G005 : launches.error().code;
  };
  EXPECT_EQ(code(actions::GatherRows{.walk = walk_of(64, 4, 4096)}), DiagCode::G072);
  EXPECT_EQ(code(actions::GatherRows{.walk = walk_of(64, 1024, 4)}), DiagCode::G072);
}

}  // namespace actions_test
}  // namespace harpe::cuda
