#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "exec/cuda/kernels/backward/backward.h"
#include "exec/cuda/kernels/backward/backward_variants.h"

namespace harpe::cuda {
namespace backward_plan_test {

using device::BackwardGrid;
using device::BackwardItem;
using device::BackwardStep;
using device::BackwardSteps;
using device::kKeyTile;
using device::kQueryTile;
using device::TileRange;

constexpr int kMultiprocessors = 132;

HeadTensor packed(DeviceAddress address, std::int64_t rows, std::int64_t heads) {
  return {address, {rows * heads * 128, heads * 128, 128}};
}

BackwardSpec some_spec(std::int64_t low = -1000, std::int64_t high = 1000) {
  BackwardSpec spec{.batch = 2, .heads = 8, .kv_heads = 2, .head_dim = 128};
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

DiagCode refusal_of(const BackwardSpec& spec) {
  const Checked<Ok> checked = check(spec);
  EXPECT_FALSE(checked.ok());
  return checked.ok() ? DiagCode{} : checked.error().code;
}

TEST(Backward, refuses_what_no_kernel_takes) {
  EXPECT_TRUE(check(some_spec()).ok());
  BackwardSpec spec = some_spec();
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

TEST(Backward, plans_blocks_maps_and_words) {
  const BackwardPlan plan = plan_backward(some_spec(), 1);
  EXPECT_EQ(plan.args.grid.parts(), 1);
  EXPECT_EQ(plan.blocks, 2 * 4 * 2);
  EXPECT_EQ(plan.query_turns, 2 * 8 * 5);
  EXPECT_EQ(plan.key_turns, 2 * 2 * 4);
  EXPECT_EQ(plan.args.grid.heads_per_kv_head, 4);
  ASSERT_EQ(plan.maps.size(), 5U);
  EXPECT_EQ(plan.maps[0].sizes, (std::array<std::int64_t, 4>{128, 8, 300, 2}));
  EXPECT_EQ(plan.maps[2].sizes, (std::array<std::int64_t, 4>{128, 2, 400, 2}));
  EXPECT_EQ(plan.maps[3].box, (std::array<int, 4>{64, 1, 64, 1}));
  EXPECT_EQ(plan.maps[4].box, (std::array<int, 4>{32, 1, 64, 1}));
  EXPECT_EQ(plan.maps[4].element, device::Element::F32);
  EXPECT_FLOAT_EQ(plan.args.scale_log2, static_cast<float>(0.5 / std::log(2.0)));
  EXPECT_FALSE(plan.args.carry_dq);
  EXPECT_FALSE(plan.args.dk.carry);
  EXPECT_TRUE(plan.args.dv.carry);
  EXPECT_EQ(plan.args.dv.strides.row, 256);
}

// For every query and key: if they see each other, their tiles must meet; if they do not but their
// tiles meet, the tile must be cut.
void check_pairs(const BackwardGrid& grid, const BackwardSpec& spec) {
  for (int key = 0; key < grid.keys; ++key) {
    const TileRange met = met_queries(grid, key / kKeyTile);
    ASSERT_LE(0, met.begin);
    ASSERT_LE(met.begin, met.end);
    ASSERT_LE(met.end, grid.query_tiles);
    for (int query = 0; query < grid.queries; ++query) {
      const bool sees = spec.low <= key - query && key - query <= spec.high;
      const int tile = query / kQueryTile;
      const bool meet = met.begin <= tile && tile < met.end;
      ASSERT_TRUE(meet || !sees) << key << " " << query;
      if (sees || !meet) continue;
      ASSERT_TRUE(is_cut(grid, key / 64 * 64, 64, tile * kQueryTile)) << key << " " << query;
    }
  }
}

TEST(Backward, meets_every_pair_that_sees_each_other) {
  for (const std::int64_t low : {-100000, -301, -77, 0, 130, 399, 500}) {
    for (const std::int64_t high : {-300, -129, 0, 100, 399, 100000}) {
      if (low > high) continue;
      const BackwardSpec spec = some_spec(low, high);
      check_pairs(plan_backward(spec, kMultiprocessors).args.grid, spec);
    }
  }
}

TEST(Backward, cuts_no_tile_that_all_see) {
  const BackwardGrid full = plan_backward(some_spec(), kMultiprocessors).args.grid;
  EXPECT_FALSE(is_cut(full, 0, 64, 0));
  EXPECT_FALSE(is_cut(full, 320, 64, 192));
  EXPECT_TRUE(is_cut(full, 384, 64, 192));  // 400 keys
  EXPECT_TRUE(is_cut(full, 320, 64, 256));  // 300 queries
  const BackwardGrid causal = plan_backward(some_spec(-1000, 0), kMultiprocessors).args.grid;
  EXPECT_FALSE(is_cut(causal, 0, 64, 64));
  EXPECT_TRUE(is_cut(causal, 64, 64, 64));
}

TEST(Backward, every_tile_of_queries_is_met_by_those_that_say_so) {
  for (const std::int64_t low : {-100000, -301, -77, 0, 130, 399, 500}) {
    for (const std::int64_t high : {-300, -129, 0, 100, 399, 100000}) {
      if (low > high) continue;
      const BackwardGrid grid = plan_backward(some_spec(low, high), kMultiprocessors).args.grid;
      for (int tile = 0; tile < grid.query_tiles; ++tile) {
        const TileRange keys = meeting_keys(grid, tile);
        EXPECT_LT(keys.begin, keys.end);
        for (int key = 0; key < grid.key_tiles; ++key) {
          const TileRange met = met_queries(grid, key);
          const bool is_met = met.begin <= tile && tile < met.end;
          EXPECT_EQ(is_met, keys.begin <= key && key < keys.end)
              << low << " " << high << ": " << key << " " << tile;
        }
      }
    }
  }
}

// Simulates the blocks of a launch, `at_once` at a time; each takes its next step when it has the
// turn at those queries. Checks that every step runs once, in one order for any timing.
class Launch {
 public:
  Launch(const BackwardGrid& grid, int at_once) : grid_(grid), at_once_(at_once) {}

  void run() {
    while (started_ < backward_items(grid_) || !blocks_.empty()) {
      start();
      ASSERT_TRUE(step()) << "nobody has a turn";
    }
    std::int64_t met = 0;
    for (int tile = 0; tile < grid_.query_tiles; ++tile) {
      const TileRange keys = meeting_keys(grid_, tile);
      met += keys.end - keys.begin;
    }
    EXPECT_EQ(done_, met * grid_.heads_per_kv_head * grid_.slices);
    for (const auto& [word, turn] : turns_) EXPECT_EQ(turn, 0);
  }

 private:
  struct Block {
    BackwardItem item;
    BackwardSteps all;
    int done = 0;
  };

  void start() {
    while (static_cast<int>(blocks_.size()) < at_once_ && started_ < backward_items(grid_)) {
      const BackwardItem item = backward_item(grid_, started_++);
      EXPECT_TRUE(items_.insert({item.place, item.slice, item.part}).second);
      blocks_.push_back({item, backward_steps(grid_, item.place, item.part)});
    }
  }

  // Runs the latest block first, the worst case for blocks that wait for it.
  bool step() {
    bool any = false;
    for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
      const int count = block->all.count();
      if (block->done == count) continue;
      const BackwardStep at = step_at(block->all, block->done);
      int& turn = turns_[{block->item.slice, at.head, at.query_tile}];
      const TileRange places = meeting_places(grid_, at.query_tile);
      if (block->item.place - places.begin != turn) continue;
      turn = turn + 1 == places.end - places.begin ? 0 : turn + 1;
      ++block->done;
      ++done_;
      any = true;
    }
    const auto is_done = [](const Block& block) { return block.done == block.all.count(); };
    return std::erase_if(blocks_, is_done) > 0 || any;
  }

  BackwardGrid grid_;
  int at_once_;
  int started_ = 0;
  std::int64_t done_ = 0;
  std::vector<Block> blocks_;
  std::set<std::tuple<int, int, int>> items_;
  std::map<std::tuple<int, int, int>, int> turns_;
};

TEST(Backward, blocks_add_in_turn_whoever_runs_when) {
  for (const std::int64_t low : {-100000, -150, 0, 500}) {
    for (const std::int64_t high : {0, 100, 100000}) {
      if (low > high) continue;
      for (const int multiprocessors : {1, 6, 20, kMultiprocessors}) {
        BackwardSpec spec = some_spec(low, high);
        spec.queries = spec.keys = 1100;
        const BackwardGrid grid = plan_backward(spec, multiprocessors).args.grid;
        Launch(grid, multiprocessors).run();
        Launch(grid, 1).run();  // other work holds all other SMs
      }
    }
  }
}

TEST(Backward, begins_with_tiles_that_see_most) {
  const BackwardGrid causal = plan_backward(some_spec(-1000, 0), 1).args.grid;
  EXPECT_TRUE(causal.first_sees_most);
  EXPECT_EQ(tile_of_place(causal, 0), 0);
  const BackwardGrid behind = plan_backward(some_spec(0, 1000), 1).args.grid;
  EXPECT_FALSE(behind.first_sees_most);
  EXPECT_EQ(tile_of_place(behind, 0), 3);
}

TEST(Backward, shares_keys_where_that_ends_sooner) {
  BackwardSpec spec = some_spec(-100000, 100000);
  spec.batch = 1;
  const auto parts = [&](std::int64_t rows, std::int64_t heads, std::int64_t kv_heads) {
    spec.queries = spec.keys = rows;
    spec.heads = heads;
    spec.kv_heads = kv_heads;
    const BackwardPlan plan = plan_backward(spec, kMultiprocessors);
    EXPECT_EQ(plan.blocks, backward_items(plan.args.grid));
    return plan.args.grid.parts();
  };
  EXPECT_EQ(parts(2048, 32, 8), 1);   // 128 blocks
  EXPECT_EQ(parts(1024, 32, 8), 2);   // 64
  EXPECT_EQ(parts(4096, 4, 1), 4);    // 32
  EXPECT_EQ(parts(65536, 32, 8), 1);  // enough blocks anyway
}

TEST(Backward, parts_of_a_tile_take_all_that_it_meets_once) {
  BackwardGrid grid = plan_backward(some_spec(-1000, 0), 1).args.grid;
  for (const int head_parts : {1, 2, 4}) {
    for (const int tile_parts : {1, 2, 8}) {
      grid.head_parts = head_parts;
      grid.tile_parts = tile_parts;
      for (int place = 0; place < grid.key_tiles; ++place) {
        std::set<std::pair<int, int>> met;
        for (int part = 0; part < grid.parts(); ++part) {
          const BackwardSteps steps = backward_steps(grid, place, part);
          for (int step = 0; step < steps.count(); ++step) {
            const BackwardStep at = step_at(steps, step);
            EXPECT_TRUE(met.insert({at.head, at.query_tile}).second);
          }
        }
        const TileRange all = met_queries(grid, tile_of_place(grid, place));
        EXPECT_EQ(met.size(), static_cast<std::size_t>(all.end - all.begin) * 4);
      }
    }
  }
}

TEST(BackwardVariants, have_names_of_their_own_and_fit_a_multiprocessor) {
  std::set<std::string> names;
  for (const KernelVariant& variant : backward_variants()) {
    names.insert(variant.name);
    EXPECT_LE(variant.shared_bytes, kMostSharedBytes);
  }
  EXPECT_EQ(names.size(), backward_configs().size());
}

// The kernel redistributes only the registers that the block starts with.
TEST(BackwardVariants, deal_out_no_more_registers_than_they_have) {
  for (device::BackwardConfig config : backward_configs()) {
    EXPECT_TRUE(valid(config));
    config.producer_registers += 8;
    EXPECT_FALSE(valid(config));
  }
}

}  // namespace backward_plan_test
}  // namespace harpe::cuda
