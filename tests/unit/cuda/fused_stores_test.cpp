#include "exec/cuda/executor/fused_stores.h"

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <sstream>

#include "exec/actions/prepare.h"
#include "exec/cuda/actions/fuse_stores.h"
#include "plan/text.h"

namespace harpe::cuda {
namespace fused_stores_test {

using actions::Action;
using actions::Assign;
using actions::Rows;
using actions::View;

constexpr DeviceAddress kState = 0x1000'0000;  // f32, dense, 64 columns
constexpr DeviceAddress kTotal = 0x1800'0000;
constexpr DeviceAddress kHome = 0x2000'0000;
constexpr DeviceAddress kPeer = 0x3000'0000;
constexpr DeviceAddress kInbox = 0x4000'0000;
constexpr std::int64_t kRows = 32;
constexpr std::int64_t kColumns = 64;

std::byte* at(DeviceAddress address) { return reinterpret_cast<std::byte*>(address); }

DeviceAddress block(DeviceAddress base, int index, std::int64_t element_bytes) {
  return base + static_cast<DeviceAddress>(index * kRows * kColumns * element_bytes);
}

// One dense block into another.
template <class Move>
Move move_block(DeviceAddress to, DType to_dtype, DeviceAddress from, DType from_dtype) {
  Move move;
  move.to = View{.data = at(to), .dtype = to_dtype, .strides = {kColumns, 1}};
  move.from = View{.data = at(from), .dtype = from_dtype, .strides = {kColumns, 1}};
  const std::int64_t lengths[] = {kRows, kColumns};
  const std::vector<std::int64_t> strides[] = {{kColumns, 1}, {kColumns, 1}};
  move.rows = Rows(lengths, strides);
  return move;
}

// A product of so many blocks of rows, a panel each, into the state.
GemmSpec product(int blocks) {
  GemmSpec spec{.n = kColumns, .k = 128, .out = device::Element::F32, .b = 0x100, .b_stride = 64};
  for (int i = 0; i < blocks; ++i) {
    spec.panels.push_back({.rows = kRows,
                           .pieces = {{.a = 0x1000, .stride = 128, .k_begin = 0, .k_count = 128}},
                           .c = block(kState, i, 4),
                           .c_stride = kColumns});
  }
  return spec;
}

Action send(int index, DType wire = DType::BF16) {
  return move_block<Assign>(block(kPeer, index, 2), wire, block(kState, index, 4), DType::F32);
}

device::RaiseTarget target(std::uint32_t name) {
  return {.word = reinterpret_cast<std::uint32_t*>(0x40ULL * name), .peer_poison = nullptr};
}

TEST(FuseStores, writes_panels_where_transfers_take_them) {
  const Action first[] = {send(0)};
  const Action second[] = {send(2)};
  const Transfer transfers[] = {{.moves = first, .raise = target(1)},
                                {.moves = second, .raise = target(2)}};
  const auto stored = fuse_stores(product(3), transfers);
  ASSERT_TRUE(stored.has_value());
  const GemmSpec& leaving = stored->leaving;
  EXPECT_EQ(leaving.out, device::Element::BF16);
  ASSERT_EQ(leaving.panels.size(), 2U);
  // Behind the one that stays comes the first.
  EXPECT_EQ(leaving.panels[0].c, block(kPeer, 2, 2));
  EXPECT_EQ(leaving.panels[1].c, block(kPeer, 0, 2));
  ASSERT_EQ(leaving.fused_stores.size(), 2U);
  const int fused_store = leaving.panels[0].fused_store;
  ASSERT_GE(fused_store, 0);
  EXPECT_EQ(leaving.fused_stores[static_cast<std::size_t>(fused_store)].word, target(2).word);
  ASSERT_TRUE(stored->staying.has_value());
  ASSERT_EQ(stored->staying->panels.size(), 1U);
  EXPECT_EQ(stored->staying->panels[0].c, block(kState, 1, 4));
  EXPECT_EQ(stored->staying->out, device::Element::F32);
}

TEST(FuseStores, leaves_alone_what_is_not_whole_or_not_rounded) {
  const Action wide[] = {send(0, DType::F32)};
  const Transfer unrounded[] = {{.moves = wide}};
  EXPECT_FALSE(fuse_stores(product(2), unrounded).has_value());
  const Action elsewhere[] = {send(0), send(7)};
  const Transfer more[] = {{.moves = elsewhere}};
  EXPECT_FALSE(fuse_stores(product(2), more).has_value());
  GemmSpec adding = product(1);
  adding.add = true;
  const Action only[] = {send(0)};
  const Transfer transfer[] = {{.moves = only}};
  EXPECT_FALSE(fuse_stores(adding, transfer).has_value());
  GemmSpec of_library = product(1);
  ASSERT_TRUE(fuse_stores(of_library, transfer).has_value());
  of_library.engine = LeafEngine::Library;
  EXPECT_FALSE(fuse_stores(of_library, transfer).has_value());
}

// The inbox first, as ranks are added in order, then the own part.
std::vector<Action> total() {
  std::vector<Action> sums;
  sums.emplace_back(move_block<Assign>(kTotal, DType::F32, kInbox, DType::BF16));
  sums.emplace_back(move_block<actions::Add>(kTotal, DType::F32, kState, DType::F32));
  sums.emplace_back(move_block<Assign>(kHome, DType::BF16, kTotal, DType::F32));
  return sums;
}

TEST(SumAtHome, takes_contributions_as_addends) {
  GemmSpec spec = product(1);
  const ReadyAt ready = [](DeviceAddress address) -> std::optional<device::FlagWait> {
    EXPECT_EQ(address, kInbox);
    return device::FlagWait{.flag = nullptr, .arrivals = 1, .name = 5};
  };
  ASSERT_TRUE(sum_at_home(spec, total(), ready));
  EXPECT_EQ(spec.out, device::Element::BF16);
  EXPECT_EQ(spec.panels[0].c, kHome);
  ASSERT_EQ(spec.panels[0].addends.size(), 1U);
  EXPECT_EQ(spec.panels[0].addends[0].address, kInbox);
  EXPECT_EQ(spec.panels[0].addends[0].stride, kColumns);
  EXPECT_EQ(spec.panels[0].addends[0].ready.name, 5U);
}

TEST(SumAtHome, changes_nothing_where_no_one_signal_says_that_it_came) {
  GemmSpec spec = product(1);
  const ReadyAt unknown = [](DeviceAddress) { return std::optional<device::FlagWait>(); };
  EXPECT_FALSE(sum_at_home(spec, total(), unknown));
  EXPECT_EQ(spec.panels[0].c, kState);
  EXPECT_TRUE(spec.panels[0].addends.empty());
}

TEST(SumAtHome, takes_whole_totals_alone) {
  GemmSpec spec = product(2);  // the second block is in no total
  const ReadyAt ready = [](DeviceAddress) { return device::FlagWait{}; };
  EXPECT_FALSE(sum_at_home(spec, total(), ready));
}

// GEMM + reduce-scatter on two ranks: one kernel a rank, sums pushed to their owners.
struct Planned {
  Plan plan;
  Blocks blocks;
  Groups groups;
  Wiring wiring;
  std::vector<TaskSpecs> specs;
  SignalSource signals;
};

constexpr DeviceAddress kArena = DeviceAddress{1} << 32;  // of rank 0; rank 1's lies as far behind

Planned planned() {
  std::ifstream file(HARPE_SOURCE_DIR "/tests/unit/cuda/departing.plan");
  std::stringstream text;
  text << file.rdbuf();
  Plan plan = parse_plan(text.str(), "departing.plan").value();
  Blocks blocks = Blocks::make(plan.program, plan.mesh, plan.form).value();
  Groups groups = find_groups(plan);
  Wiring wiring = wire(plan, groups);
  actions::Bases bases;
  for (int rank = 0; rank < 2; ++rank) {
    bases.arenas.push_back(at(kArena * static_cast<DeviceAddress>(rank + 1)));
  }
  const actions::Occupancy occupancy(plan, blocks, bases.arenas);
  const actions::Scratch scratch{.reserve = [](std::int64_t) { return at(kTotal); },
                                 .elements = std::int64_t{1} << 30};
  const actions::Setting setting{
      .plan = plan, .blocks = blocks, .bases = bases, .occupancy = occupancy, .scratch = scratch};
  std::vector<TaskSpecs> specs;
  for (const Task& task : plan.tasks) {
    TaskSpecs& own = specs.emplace_back();
    own.actions = actions::prepare_task(setting, task).value().actions;
    for (const Action& action : own.actions) {
      const std::vector<LaunchSpec> launches =
          plan_launches({.nest = "mm", .buffer = "c"}, action).value();
      own.launches.insert(own.launches.end(), launches.begin(), launches.end());
    }
  }
  SignalSource signals;
  signals.arena = kArena;
  for (std::uint32_t signal = 0; signal < wiring.pages[0].size(); ++signal) {
    signals.waits.push_back({.flag = nullptr, .arrivals = 1, .name = signal});
  }
  signals.target = [](TaskId, const Raise& raise) {
    return std::optional(target(static_cast<std::uint32_t>(raise.signal) + 1));
  };
  return {.plan = std::move(plan),
          .blocks = std::move(blocks),
          .groups = std::move(groups),
          .wiring = std::move(wiring),
          .specs = std::move(specs),
          .signals = std::move(signals)};
}

std::vector<UnitSpec> units_of(const Planned& it) {
  return make_units(it.plan, it.wiring, it.groups, RankId(0), it.specs, it.signals);
}

const UnitSpec& unit_of(const std::vector<UnitSpec>& units, std::int64_t task) {
  return *std::ranges::find_if(units, [&](const UnitSpec& unit) {
    return std::ranges::find(unit.tasks, TaskId(task)) != unit.tasks.end();
  });
}

TEST(FusedStores, make_one_launch_of_products_transfers_and_the_total) {
  const Planned it = planned();
  const std::vector<UnitSpec> units = units_of(it);
  const UnitSpec& unit = unit_of(units, 2);
  EXPECT_EQ(unit.tasks, (std::vector{TaskId(2), TaskId(4), TaskId(7), TaskId(8)}));
  EXPECT_EQ(unit.silent, std::vector{TaskId(7)});  // its signal is raised inside
  EXPECT_EQ(unit.spared, 0);
  // That the other rank is done with what was there before is waited for at the beginning.
  EXPECT_TRUE(unit.awaited.empty());
  ASSERT_EQ(unit.launches.size(), 1U);
  const auto& spec = std::get<GemmSpec>(unit.launches[0]);
  ASSERT_EQ(spec.panels.size(), 2U);
  EXPECT_GE(spec.panels[0].c, 2 * kArena);  // the peer's inbox
  EXPECT_EQ(spec.panels[0].fused_store, 0);
  EXPECT_EQ(spec.panels[1].c, kArena + 196608);  // home
  ASSERT_EQ(spec.panels[1].addends.size(), 1U);
  EXPECT_EQ(spec.panels[1].addends[0].address, kArena + 851968);
  const auto& signals = it.wiring.tasks[8].waits;
  ASSERT_EQ(signals.size(), 1U);
  EXPECT_EQ(spec.panels[1].addends[0].ready.name, static_cast<std::uint32_t>(signals[0]));
}

TEST(FusedStores, leave_the_total_apart_where_ranks_share_a_gpu) {
  Planned it = planned();
  it.signals.is_alone = false;
  const std::vector<UnitSpec> units = units_of(it);
  const UnitSpec& unit = unit_of(units, 2);
  EXPECT_EQ(unit.tasks, (std::vector{TaskId(2), TaskId(4), TaskId(7)}));
  ASSERT_EQ(unit.launches.size(), 2U);  // one leaves, one stays
  EXPECT_EQ(std::get<GemmSpec>(unit.launches[0]).out, device::Element::BF16);
  EXPECT_EQ(std::get<GemmSpec>(unit.launches[1]).out, device::Element::F32);
  EXPECT_EQ(unit_of(units, 8).tasks, std::vector{TaskId(8)});
}

TEST(FusedStores, leave_transfers_apart_that_others_read_too) {
  Planned it = planned();
  it.plan.tasks[8].reads.push_back(it.plan.tasks[7].reads.front());
  const std::vector<UnitSpec> units = units_of(it);
  EXPECT_EQ(unit_of(units, 2).tasks, (std::vector{TaskId(2), TaskId(4)}));
}

TEST(FusedStores, send_nothing_where_signals_are_lost) {
  Planned it = planned();
  it.signals.target = [](TaskId, const Raise&) { return std::optional<device::RaiseTarget>(); };
  const std::vector<UnitSpec> units = units_of(it);
  const auto& spec = std::get<GemmSpec>(unit_of(units, 2).launches[0]);
  EXPECT_TRUE(spec.fused_stores.empty());
  EXPECT_EQ(spec.panels[0].fused_store, -1);
}

}  // namespace fused_stores_test
}  // namespace harpe::cuda
