#include "exec/actions/occupancy.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/unit/exec/plan_builder.h"

namespace harpe::actions {
namespace {

// Two ranks; 4 experts with slots in 2 blocks each: 8 numbers per allocation of `rows`.
test::PlanBuilder routed() {
  return test::PlanBuilder(
      "program routed {\n  axis T = 8\n  axis Kc = 2\n  axis E = 4\n  axis C = dyn 8 of E\n"
      "  buffer x : f32[T] in\n  buffer index : i32[T, Kc] in\n  buffer y : f32[T] out\n"
      "  buffer rows : f32[E, C] temp\n  route R : (E, C) <- (T, Kc) by index\n  leaf pick\n"
      "  nest dispatch over (E, C) {\n    rows = copy(x[T=R.T])\n  }\n"
      "  nest combine over (T, Kc) {\n    y sum= pick(rows[E=R.E, C=R.C])\n  }\n}\n",
      "mesh one = gpu:2\n",
      "commir push for routed on one {\n  split T = t0:2 * t1:_\n  split E = e0:2 * e1:_\n"
      "  split C = c0:2 * c1:_\n  layout C slab(c0, t0)\n  place x[t0@gpu]\n  place y[t0@gpu]\n"
      "  place rows[e0@gpu]\n  nest dispatch {\n    par e0 on gpu\n    leaf\n  }\n"
      "  nest combine {\n    par t0 on gpu\n    leaf\n  }\n}\n");
}

TEST(Occupancy, lies_where_each_rank_has_memory) {
  test::PlanBuilder builder = routed();
  const Plan& plan = builder.plan();
  const std::int64_t bytes = Occupancy::bytes_per_rank(plan, builder.blocks());
  EXPECT_EQ(bytes, 8 * 4);
  std::array<std::array<std::int32_t, 8>, 2> memory{};
  const std::array<std::byte*, 2> places = {reinterpret_cast<std::byte*>(memory[0].data()),
                                            reinterpret_cast<std::byte*>(memory[1].data())};
  const Occupancy occupancy(plan, builder.blocks(), places);
  for (const std::int64_t rank : {0, 1}) {
    EXPECT_EQ(occupancy.of(builder.home_of(rank, "rows")),
              memory[static_cast<std::size_t>(rank)].data());
    EXPECT_EQ(occupancy.of(builder.home_of(rank, "x")), nullptr);
  }
}

TEST(Occupancy, keeps_allocations_of_a_rank_apart) {
  test::PlanBuilder builder = routed();
  const AllocId more =
      builder.slot(1, "st", "rows", Level::Stage, DType::F32, {true, true, true, true});
  const Plan& plan = builder.plan();
  EXPECT_EQ(Occupancy::bytes_per_rank(plan, builder.blocks()), 2 * 8 * 4);
  std::array<std::int32_t, 32> memory{};
  auto* const begin = reinterpret_cast<std::byte*>(memory.data());
  const std::array<std::byte*, 2> places = {begin, begin + 64};
  const Occupancy occupancy(plan, builder.blocks(), places);
  EXPECT_EQ(occupancy.of(builder.home_of(1, "rows")), memory.data() + 16);
  EXPECT_EQ(occupancy.of(more), memory.data() + 24);
}

TEST(Occupancy, needs_nothing_without_a_ragged_axis) {
  test::PlanBuilder builder(
      "program dense {\n  axis M = 8\n  buffer x : f32[M] in\n  buffer y : f32[M] out\n"
      "  nest move over (M) {\n    y = copy(x)\n  }\n}\n",
      "mesh one = gpu:2\n",
      "commir s for dense on one {\n  split M = m0:2 * m1:_\n  place x[m0@gpu]\n  place y[]\n"
      "  nest move {\n    leaf\n  }\n}\n");
  EXPECT_EQ(Occupancy::bytes_per_rank(builder.plan(), builder.blocks()), 0);
}

}  // namespace
}  // namespace harpe::actions
