#include "exec/cuda/target/narrow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "exec/cuda/kernels/attention/attention.h"
#include "plan/text.h"

namespace harpe::cuda {
namespace narrow_test {

constexpr DeviceAddress kArena = 0x1000'0000;  // of rank r: r + 1 times this

std::vector<std::byte*> arenas() {
  return {reinterpret_cast<std::byte*>(kArena), reinterpret_cast<std::byte*>(2 * kArena)};
}

Plan read_plan() {
  std::ifstream file(HARPE_SOURCE_DIR "/tests/unit/launch/exchanged.plan");
  std::stringstream text;
  text << file.rdbuf();
  return parse_plan(text.str(), "exchanged.plan").value();
}

// Attention by heads, `ulysses` on two ranks, with rank 0's output states in 16 bits.
struct Exchanged {
  Plan plan = read_plan();
  AllocId states = find_states();
  DeviceAddress begin = kArena + static_cast<DeviceAddress>(alloc().offset);
  NarrowStates narrow = NarrowStates::of(plan, {.arenas = arenas()}, {states});

  [[nodiscard]] const Alloc& alloc() const { return plan.allocs[states.index()]; }

 private:
  [[nodiscard]] AllocId find_states() const {
    const auto found = std::ranges::find_if(plan.allocs, [](const Alloc& each) {
      return each.rank == RankId(0) && each.level == Level::Acc && each.buffer == "o";
    });
    return AllocId(found - plan.allocs.begin());
  }
};

// The kernel that makes the states at this address.
AttentionSpec attention(DeviceAddress at) {
  AttentionSpec spec{.heads = 2, .kv_heads = 2, .query_dim = 64, .value_dim = 64, .to_state = true};
  const device::AttentionStrides strides{.batch = 1 << 16, .row = 128, .head = 64};
  spec.panels = {{.rows = 64,
                  .queries = {.address = 0x4000, .strides = strides},
                  .output = {.address = at, .strides = strides}}};
  spec.chunks = {{.rows = 64,
                  .keys = {.address = 0x8000, .strides = strides},
                  .values = {.address = 0xc000, .strides = strides}}};
  return spec;
}

actions::Action taken(DeviceAddress from) {
  actions::Assign move;
  move.to = {.data = reinterpret_cast<std::byte*>(0x10), .dtype = DType::BF16, .strides = {1}};
  move.from = {.data = reinterpret_cast<std::byte*>(from), .dtype = DType::F32, .strides = {1}};
  return move;
}

TEST(NarrowStates, are_stored_and_read_in_their_final_type) {
  const Exchanged one;
  std::vector<LaunchSpec> launches = {attention(one.begin + 256)};
  one.narrow.leave(launches);
  const auto& left = launches.front().get<AttentionSpec>();
  EXPECT_FALSE(left.to_state);
  EXPECT_EQ(left.panels.front().output.address, one.begin + 128);
  EXPECT_EQ(left.panels.front().output.strides.row, 128);
  actions::Action move = taken(one.begin + 512);
  one.narrow.read(move);
  EXPECT_EQ(std::get<actions::Assign>(move).from.dtype, DType::BF16);
  EXPECT_EQ(std::get<actions::Assign>(move).from.data,
            reinterpret_cast<std::byte*>(one.begin + 256));
}

TEST(NarrowStates, stay_wide_where_a_launch_goes_on_with_them) {
  const Exchanged one;
  AttentionSpec carried = attention(one.begin);
  carried.carried = true;
  std::vector<LaunchSpec> launches = {carried};
  one.narrow.leave(launches);
  EXPECT_TRUE(launches.front().get<AttentionSpec>().to_state);
  EXPECT_EQ(launches.front().get<AttentionSpec>().panels.front().output.address, one.begin);
}

TEST(NarrowStates, are_none_of_what_lies_behind_them) {
  const Exchanged one;
  const DeviceAddress end = one.begin + static_cast<DeviceAddress>(one.alloc().bytes);
  std::vector<LaunchSpec> launches = {attention(end)};
  one.narrow.leave(launches);
  EXPECT_TRUE(launches.front().get<AttentionSpec>().to_state);
  actions::Action move = taken(end);
  one.narrow.read(move);
  EXPECT_EQ(std::get<actions::Assign>(move).from.dtype, DType::F32);
}

}  // namespace narrow_test
}  // namespace harpe::cuda
