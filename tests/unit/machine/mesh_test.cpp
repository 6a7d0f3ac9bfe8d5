#include "machine/mesh.h"

#include <gtest/gtest.h>

namespace harpe {
namespace {

const Mesh kTwo{.name = "two", .axes = {{"node", 2}, {"gpu", 8}}};

std::string refusal(const Mesh& mesh) {
  const Checked<Ok> checked = check_mesh(mesh);
  return checked.ok() ? "accepted" : render(checked.error());
}

TEST(Mesh, numbers_ranks_major_first) {
  const std::vector<std::int64_t> second_node = {1, 0};
  const std::vector<std::int64_t> second_gpu = {0, 1};
  EXPECT_EQ(rank_of(kTwo, second_node), RankId(8));
  EXPECT_EQ(rank_of(kTwo, second_gpu), RankId(1));
}

TEST(Mesh, coordinates_and_rank_are_inverse_on_every_rank) {
  const Mesh mesh{.name = "m", .axes = {{"a", 2}, {"b", 3}, {"c", 5}}};
  ASSERT_EQ(mesh.ranks(), 30);
  for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    const std::vector<std::int64_t> coordinates = coordinates_of(mesh, RankId(rank));
    EXPECT_EQ(coordinates[0] * 15 + coordinates[1] * 5 + coordinates[2], rank);
    EXPECT_EQ(rank_of(mesh, coordinates), RankId(rank));
  }
}

TEST(Mesh, finds_axes_by_name) {
  EXPECT_EQ(find_axis(kTwo, "node"), 0);
  EXPECT_EQ(find_axis(kTwo, "gpu"), 1);
  EXPECT_EQ(find_axis(kTwo, "gp"), -1);
}

TEST(Mesh, accepts_the_largest_mesh) {
  EXPECT_TRUE(check_mesh({.name = "m", .axes = {{"a", 256}, {"b", 256}}}).ok());
  EXPECT_TRUE(check_mesh({.name = "m", .axes = {{"a", kMaxRanks}}}).ok());
  EXPECT_TRUE(check_mesh({.name = "m", .axes = {{"a", 1}}}).ok());
}

TEST(Mesh, refuses_a_mesh_without_axes) {
  EXPECT_EQ(refusal({.name = "m", .axes = {}}),
            "error[M101]: mesh `m` has no axis; name one, as in `mesh one = gpu:8`");
}

TEST(Mesh, refuses_sizes_and_products_outside_the_limit) {
  EXPECT_EQ(refusal({.name = "m", .axes = {{"a", 0}}}),
            "error[M102]: mesh `a=0`: the size of axis `a` is 0, outside 1 .. 65536");
  EXPECT_EQ(refusal({.name = "m", .axes = {{"a", 2}, {"b", 65537}}}),
            "error[M102]: mesh `a=2,b=65537`: the size of axis `b` is 65537, outside 1 .. 65536");
  EXPECT_EQ(refusal({.name = "m", .axes = {{"a", 256}, {"b", 257}}}),
            "error[M102]: mesh `a=256,b=257`: the product of axes up to `b` is 65792, outside 1 .. "
            "65536");
}

TEST(Mesh, a_product_that_would_overflow_is_refused_before_it_does) {
  Mesh mesh{.name = "m", .axes = {}};
  for (int i = 0; i < 5; ++i) mesh.axes.push_back({"a" + std::to_string(i), kMaxRanks});
  EXPECT_EQ(
      refusal(mesh),
      "error[M102]: mesh `a0=65536,a1=65536,a2=65536,a3=65536,a4=65536`: the product of axes up to "
      "`a1` is 4294967296, outside "
      "1 .. 65536");
}

TEST(Mesh, refuses_a_name_used_twice) {
  EXPECT_EQ(refusal({.name = "m", .axes = {{"gpu", 2}, {"gpu", 4}}}),
            "error[M103]: mesh `gpu=2,gpu=4` has two axes called `gpu`; rename one of them");
}

TEST(Mesh, a_rank_outside_the_mesh_is_our_error) {
  EXPECT_THROW((void)coordinates_of(kTwo, RankId(16)), InternalError);
  const std::vector<std::int64_t> outside = {0, 8};
  EXPECT_THROW((void)rank_of(kTwo, outside), InternalError);
}

}  // namespace
}  // namespace harpe
