#include "exec/cuda/executor/units.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "exec/cuda/actions/merge.h"
#include "exec/cuda/actions/read_in_place.h"
#include "exec/cuda/actions/relocate.h"
#include "tests/support/proxy_plan.h"

namespace harpe::cuda {
namespace units_test {

using actions::Assign;
using actions::Rows;
using actions::View;

constexpr DeviceAddress kState = 0x1000'0000;
constexpr DeviceAddress kHome = 0x2000'0000;
constexpr DeviceAddress kSlot = 0x3000'0000;

std::byte* at(DeviceAddress address) { return reinterpret_cast<std::byte*>(address); }

// Rows of a dense array into rows of another, which lie further apart.
Assign move_rows(DeviceAddress to, DType to_dtype, std::int64_t to_stride, DeviceAddress from,
                 DType from_dtype, std::int64_t rows, std::int64_t columns) {
  Assign move;
  move.to = View{.data = at(to), .dtype = to_dtype, .strides = {to_stride, 1}};
  move.from = View{.data = at(from), .dtype = from_dtype, .strides = {columns, 1}};
  const std::int64_t lengths[] = {rows, columns};
  const std::vector<std::int64_t> strides[] = {{to_stride, 1}, {columns, 1}};
  move.rows = Rows(lengths, strides);
  return move;
}

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

TEST(Relocate, writes_whole_products_into_their_homes) {
  std::vector<LaunchSpec> launches = {product(0x1000, 32, kState),
                                      product(0x9000, 16, kState + 32 * 64 * 4)};
  const actions::Action moves[] = {move_rows(kHome, DType::BF16, 96, kState, DType::F32, 48, 64)};
  ASSERT_TRUE(relocate(launches, moves));
  const auto& second = std::get<GemmSpec>(launches[1]);
  EXPECT_EQ(second.out, device::Element::BF16);
  EXPECT_EQ(second.panels[0].c, kHome + 32 * 96 * 2);
  EXPECT_EQ(second.panels[0].c_stride, 96);
}

TEST(Relocate, changes_nothing_where_a_part_is_made_elsewhere) {
  std::vector<LaunchSpec> launches = {product(0x1000, 32, kState)};
  const actions::Action moves[] = {move_rows(kHome, DType::BF16, 96, kState, DType::F32, 48, 64)};
  EXPECT_FALSE(relocate(launches, moves));
  EXPECT_EQ(std::get<GemmSpec>(launches[0]).panels[0].c, kState);
}

TEST(Relocate, writes_the_last_of_carried_attention_home_and_reads_the_state_where_it_was) {
  constexpr DeviceAddress kLse = 0x1800'0000;
  AttentionSpec spec = attention(0, false, 50, true);
  spec.heads = spec.kv_heads = 1;
  AttentionPanelSpec& panel = spec.panels[0];
  panel.output = {.address = kState, .strides = {.batch = 0, .row = 64, .head = 0}};
  panel.carried_output = panel.output;
  panel.lse = {.address = kLse, .strides = {.batch = 0, .row = 1, .head = 0}};
  std::vector<LaunchSpec> launches = {spec};
  const actions::Action moves[] = {
      move_rows(kHome, DType::BF16, 96, kState, DType::F32, 100, 64),
      move_rows(kHome + 0x100000, DType::F32, 1, kLse, DType::F32, 100, 1)};
  ASSERT_TRUE(relocate(launches, moves));
  const auto& moved = std::get<AttentionSpec>(launches[0]);
  EXPECT_FALSE(moved.to_state);
  EXPECT_TRUE(moved.carried);
  EXPECT_EQ(moved.panels[0].output.address, kHome);
  EXPECT_EQ(moved.panels[0].carried_output.address, kState);
  EXPECT_EQ(moved.panels[0].lse.address, kHome + 0x100000);
  EXPECT_EQ(moved.panels[0].carried_lse, kLse);
}

TEST(Relocate, says_at_home_how_many_rows_are_used) {
  std::int32_t input = 0;
  std::int32_t state = 0;
  std::int32_t home = 0;
  GemmSpec ragged = product(0x1000, 32, kState);
  ragged.panels.front().used = {.rows = &input, .result = &state, .before = 0, .capacity = 32};
  Assign move = move_rows(kHome, DType::BF16, 96, kState, DType::F32, 1, 64);
  move.slots = {.used = {.rows = &state}, .capacity = 32, .strides = {96, 64}, .result = &home};
  std::vector<LaunchSpec> launches = {ragged};
  const actions::Action moves[] = {move};
  ASSERT_TRUE(relocate(launches, moves));
  const GemmPanelSpec& panel = std::get<GemmSpec>(launches.front()).panels.front();
  EXPECT_EQ(panel.c, kHome);
  EXPECT_EQ(panel.c_stride, 96);
  EXPECT_EQ(panel.used.result, &home);
  // Of other rows than those that the product says are there.
  move.slots.used.rows = &input;
  launches = {ragged};
  const actions::Action others[] = {move};
  EXPECT_FALSE(relocate(launches, others));
  launches = {product(0x1000, 32, kState)};
  EXPECT_FALSE(relocate(launches, moves));
}

TEST(Relocate, keeps_sums_that_are_added_to) {
  GemmSpec adding = product(0x1000, 48, kState);
  adding.add = true;
  std::vector<LaunchSpec> launches = {adding};
  const actions::Action moves[] = {move_rows(kHome, DType::BF16, 64, kState, DType::F32, 48, 64)};
  EXPECT_FALSE(relocate(launches, moves));
}

TEST(ReadInPlace, reads_copies_where_they_come_from_and_waits_for_none) {
  const ArrivingLaunch launches[] = {{product(kSlot, 32, kState), flag(1)},
                                     {product(0x9000, 16, kState + 32 * 64 * 4), flag(2)}};
  std::optional<LaunchSpec> merged = merge(launches, {});
  ASSERT_TRUE(merged.has_value());
  // The slot is dense; the home's rows lie 256 apart.
  Assign move = move_rows(kSlot, DType::BF16, 128, kHome, DType::BF16, 32, 128);
  const std::int64_t lengths[] = {32, 128};
  const std::vector<std::int64_t> strides[] = {{128, 1}, {256, 1}};
  move.rows = Rows(lengths, strides);
  const PlaceMap map(move, PlaceMap::Way::Against);
  EXPECT_EQ(read_in_place(*merged, std::span(&map, 1)), (std::vector<bool>{true, false}));
  const auto& spec = std::get<GemmSpec>(*merged);
  EXPECT_EQ(spec.panels[0].pieces[0].a, kHome);
  EXPECT_EQ(spec.panels[0].pieces[0].stride, 256);
  EXPECT_EQ(spec.panels[0].pieces[0].ready.flag, nullptr);
  EXPECT_EQ(spec.panels[1].pieces[0].ready.name, 2U);
}

TEST(ReadInPlace, reads_all_or_nothing) {
  const ArrivingLaunch launches[] = {{product(kSlot, 32, kState), flag(1)}};
  std::optional<LaunchSpec> merged = merge(launches, {});
  ASSERT_TRUE(merged.has_value());
  const Assign half = move_rows(kSlot, DType::BF16, 128, kHome, DType::BF16, 16, 128);
  const PlaceMap map(half, PlaceMap::Way::Against);
  EXPECT_EQ(read_in_place(*merged, std::span(&map, 1)), (std::vector<bool>{false}));
  EXPECT_EQ(std::get<GemmSpec>(*merged).panels[0].pieces[0].a, kSlot);
}

using test::push_plan;

// Of a unit whose kernel has all from the start, or that is several launches, nothing is noted.
TEST(InnerWait, is_of_the_one_kernel_that_waits_inside) {
  const auto waits = [](std::vector<LaunchSpec> launches) {
    UnitSpec unit{.tasks = {TaskId(0)}, .launches = std::move(launches)};
    return inner_wait(unit) != nullptr;
  };
  const GemmSpec plain = product(0x1000, 32, kState);
  GemmSpec arriving = plain;
  arriving.panels[0].pieces[0].ready = flag(1);
  GemmSpec adding = plain;
  adding.panels[0].addends = {{.address = 0x1000, .stride = 64, .ready = flag(2)}};
  EXPECT_FALSE(waits({plain}));
  EXPECT_TRUE(waits({arriving}));
  EXPECT_TRUE(waits({adding}));
  EXPECT_FALSE(waits({arriving, plain}));
  EXPECT_FALSE(waits({}));

  const AttentionSpec here = attention(0, false, 64, false);
  AttentionSpec keys = here;
  keys.chunks[0].ready = flag(3);
  AttentionSpec queries = here;
  queries.panels[0].ready = flag(4);
  EXPECT_FALSE(waits({here}));
  EXPECT_TRUE(waits({keys}));
  EXPECT_TRUE(waits({queries}));

  UnitSpec unit{.tasks = {TaskId(0)}, .launches = {keys}};
  EXPECT_EQ(inner_wait(unit), &std::get<AttentionSpec>(unit.launches[0]).wait);
}

TEST(Groups, are_the_tasks_of_one_kernel) {
  const Plan plan = push_plan();
  const Groups groups = find_groups(plan);
  ASSERT_EQ(groups.members.size(), 2U);
  for (const std::vector<TaskId>& members : groups.members) {
    EXPECT_EQ(members.size(), 8U);
    for (const TaskId task : members) {
      EXPECT_EQ(plan.tasks[task.index()].kind, TaskKind::Compute);
      EXPECT_TRUE(groups.is_inside(task));
    }
  }
}

TEST(Groups, wait_for_signals_alone) {
  const Plan plan = push_plan();
  const Groups groups = find_groups(plan);
  const Wiring wiring = wire(plan, groups);
  for (const std::vector<TaskId>& members : groups.members) {
    for (const TaskId task : members) {
      EXPECT_EQ(wiring.tasks[task.index()].waits.size(), 1U);
      EXPECT_TRUE(task == members.front() || wiring.tasks[task.index()].after.empty());
    }
  }
}

// A kernel cannot raise a signal before its end that it needs an answer to.
TEST(Groups, fall_apart_where_their_end_would_close_a_circle) {
  Plan plan = push_plan();
  const std::vector<TaskId> members = find_groups(plan).members.front();
  const auto copy = std::ranges::find_if(plan.syncs, [&](const Sync& sync) {
    return sync.to == members.back() && sync.kind == SyncKind::Flag;
  });
  ASSERT_NE(copy, plan.syncs.end());
  plan.syncs.push_back(
      {.from = members.front(), .to = copy->from, .kind = SyncKind::Flag, .flag = 99});
  EXPECT_TRUE(find_groups(plan).members.empty());
}

}  // namespace units_test
}  // namespace harpe::cuda
