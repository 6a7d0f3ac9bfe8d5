#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "exec/cuda/gradient.h"
#include "exec/cuda/gradient_variants.h"

namespace harpe::cuda {
namespace {

using device::GradientRows;
using device::GradientSide;

constexpr int kMultiprocessors = 132;
constexpr int kRows = device::kGradientRows;

HeadTensor packed(DeviceAddress address, std::int64_t rows, std::int64_t heads) {
  return {address, {rows * heads * 128, heads * 128, 128}};
}

GradientSpec some_spec(std::int64_t low = -1000, std::int64_t high = 1000) {
  GradientSpec spec{.batch = 2, .heads = 8, .kv_heads = 2, .head_dim = 128};
  spec.queries = 300;
  spec.keys = 400;
  spec.q = packed(4096, 300, 8);
  spec.k = packed(8192, 400, 2);
  spec.v = packed(16384, 400, 2);
  spec.d_o = packed(32768, 300, 8);
  spec.lse = spec.delta = {65540, {8 * 300, 1, 300}};
  spec.dq.to = packed(4096, 300, 8);
  spec.dk.to = packed(8192, 400, 2);
  spec.dv.to = packed(8192, 400, 2);
  spec.dv.carry = true;
  spec.scale = 0.5;
  spec.low = low;
  spec.high = high;
  return spec;
}

DiagCode refusal_of(const GradientSpec& spec) {
  const Checked<Ok> checked = check(spec);
  EXPECT_FALSE(checked.ok());
  return checked.ok() ? DiagCode{} : checked.error().code;
}

TEST(Gradient, refuses_what_no_kernel_takes) {
  EXPECT_TRUE(check(some_spec()).ok());
  GradientSpec spec = some_spec();
  spec.head_dim = 96;
  EXPECT_EQ(refusal_of(spec), DiagCode::G060);
  spec = some_spec();
  spec.element = device::Element::F16;
  EXPECT_EQ(refusal_of(spec), DiagCode::G060);
  spec = some_spec();
  spec.kv_heads = 3;
  EXPECT_EQ(refusal_of(spec), DiagCode::G062);
  spec = some_spec();
  spec.keys = 0;
  EXPECT_EQ(refusal_of(spec), DiagCode::G062);
  spec = some_spec();
  spec.d_o.strides.row += 4;
  EXPECT_EQ(refusal_of(spec), DiagCode::G041);
  spec = some_spec();
  spec.dk.to.address += 4;
  EXPECT_EQ(refusal_of(spec), DiagCode::G041);
  spec = some_spec();
  spec.scale = 0;
  EXPECT_EQ(refusal_of(spec), DiagCode::G063);
}

TEST(Gradient, plans_blocks_maps_and_sums) {
  const GradientPlan plan = plan_gradient(some_spec(), 1);
  EXPECT_EQ(plan.args.key_parts, 1);
  EXPECT_EQ(plan.blocks, 2 * (4 * 2 + 3 * 8));
  EXPECT_EQ(plan.args.keys.tiles * plan.args.keys.slices, 16);
  EXPECT_EQ(plan.args.queries.tiles * plan.args.queries.slices, 48);
  EXPECT_EQ(plan.args.heads_per_kv_head, 4);
  ASSERT_EQ(plan.maps.size(), 4U);
  EXPECT_EQ(plan.maps[0].sizes, (std::array<std::int64_t, 4>{128, 8, 300, 2}));
  EXPECT_EQ(plan.maps[2].sizes, (std::array<std::int64_t, 4>{128, 2, 400, 2}));
  EXPECT_EQ(plan.maps[3].box, (std::array<int, 4>{64, 1, 64, 1}));
  EXPECT_FLOAT_EQ(plan.args.scale_log2, static_cast<float>(0.5 / std::log(2.0)));
  EXPECT_FALSE(plan.args.dk.carry);
  EXPECT_TRUE(plan.args.dv.carry);
  EXPECT_EQ(plan.args.dv.strides.row, 256);
}

// For each pair of a row and a column: whether a block meets it, once, and whether it is cut where
// it does not see.
void check_side(const GradientRows& side, bool of_keys, const GradientSpec& spec) {
  const int tile = column_tile(of_keys ? GradientSide::Keys : GradientSide::Queries);
  for (int first = 0; first < side.rows; first += kRows) {
    const device::ColumnRange range = seen_columns(side, first, kRows);
    ASSERT_LE(0, range.begin);
    ASSERT_LE(range.end, side.columns);
    for (int row = first; row < std::min(first + kRows, side.rows); ++row) {
      for (int column = 0; column < side.columns; ++column) {
        const std::int64_t distance = of_keys ? row - column : column - row;
        const bool sees = spec.low <= distance && distance <= spec.high;
        const bool in_band = side.band.low <= column - row && column - row <= side.band.high;
        ASSERT_EQ(sees, in_band);
        const bool met = range.begin <= column && column < range.end;
        ASSERT_TRUE(met || !sees) << row << " " << column;
        if (sees || !met) continue;
        const int at = range.begin + (column - range.begin) / tile * tile;
        const int group = first + (row - first) / 64 * 64;
        ASSERT_TRUE(is_cut(side, group, 64, at, tile)) << row << " " << column;
      }
    }
  }
}

TEST(Gradient, meets_every_pair_that_sees_each_other) {
  for (const std::int64_t low : {-100000, -301, -77, 0, 130, 399, 500}) {
    for (const std::int64_t high : {-300, -129, 0, 100, 399, 100000}) {
      const GradientSpec spec = some_spec(low, high);
      const GradientPlan plan = plan_gradient(spec, kMultiprocessors);
      check_side(plan.args.keys, true, spec);
      check_side(plan.args.queries, false, spec);
    }
  }
}

TEST(Gradient, cuts_no_tile_that_all_see) {
  const GradientRows side = plan_gradient(some_spec(), kMultiprocessors).args.keys;
  EXPECT_FALSE(is_cut(side, 0, 64, 0, 64));
  EXPECT_TRUE(is_cut(side, 0, 64, 256, 64));  // 300 queries
  const GradientRows causal = plan_gradient(some_spec(-1000, 0), kMultiprocessors).args.queries;
  EXPECT_FALSE(is_cut(causal, 128, 64, 0, 128));
  EXPECT_TRUE(is_cut(causal, 128, 64, 128, 128));
}

TEST(Gradient, makes_every_tile_once_and_begins_with_those_that_see_most) {
  const GradientPlan plan = plan_gradient(some_spec(-1000, 0), kMultiprocessors);
  EXPECT_TRUE(plan.args.keys.first_sees_most);
  EXPECT_FALSE(plan.args.queries.first_sees_most);
  for (const GradientRows& side : {plan.args.keys, plan.args.queries}) {
    std::set<std::array<int, 3>> made;
    for (int ticket = 0; ticket < side.tiles * side.slices; ++ticket) {
      const device::GradientTile tile = gradient_tile(side, ticket, kRows);
      made.insert({tile.row, tile.head, tile.batch});
      EXPECT_LT(tile.row, side.rows);
      EXPECT_LT(tile.head, side.heads);
      EXPECT_LT(tile.batch, 2);
    }
    EXPECT_EQ(made.size(), static_cast<std::size_t>(side.tiles) * side.slices);
  }
  EXPECT_EQ(gradient_tile(plan.args.keys, 0, kRows).row, 0);
  EXPECT_EQ(gradient_tile(plan.args.queries, 0, kRows).row, 256);
}

TEST(Gradient, shares_keys_where_they_would_outlast_the_rest) {
  GradientSpec spec = some_spec(-100000, 100000);
  spec.batch = 1;
  const auto parts = [&](std::int64_t rows, std::int64_t heads, std::int64_t kv_heads) {
    spec.queries = spec.keys = rows;
    spec.heads = heads;
    spec.kv_heads = kv_heads;
    const GradientPlan plan = plan_gradient(spec, kMultiprocessors);
    EXPECT_EQ(plan.blocks % plan.args.key_parts, 0);
    return plan.args.key_parts;
  };
  EXPECT_EQ(parts(8192, 32, 8), 1);
  EXPECT_EQ(parts(2048, 32, 32), 1);
  EXPECT_EQ(parts(1024, 32, 8), 1);
  EXPECT_EQ(parts(4096, 4, 1), 4);
  EXPECT_EQ(parts(128, 8, 1), 4);
}

TEST(Gradient, parts_of_a_tile_take_every_step_once) {
  for (const int steps : {0, 1, 3, 4, 257}) {
    for (const int parts : {1, 2, 4}) {
      int next = 0;
      for (int part = 0; part < parts; ++part) {
        const device::StepRange range = device::steps_of_part(steps, part, parts);
        EXPECT_EQ(range.begin, next);
        EXPECT_LE(range.end - range.begin, (steps + parts - 1) / parts);
        next = range.end;
      }
      EXPECT_EQ(next, steps);
    }
  }
}

TEST(GradientVariants, have_names_of_their_own_and_fit_a_multiprocessor) {
  std::set<std::string> names;
  for (const KernelVariant& variant : gradient_variants()) {
    names.insert(variant.name);
    EXPECT_LE(variant.shared_bytes, kMostSharedBytes);
  }
  EXPECT_EQ(names.size(), gradient_configs().size());
}

// Registers are dealt out anew from what the block starts with.
TEST(GradientVariants, deal_out_no_more_registers_than_they_have) {
  for (device::GradientConfig config : gradient_configs()) {
    EXPECT_TRUE(valid(config));
    config.producer_registers += 8;
    EXPECT_FALSE(valid(config));
  }
}

}  // namespace
}  // namespace harpe::cuda
