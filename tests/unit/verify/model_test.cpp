#include "verify/model.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "tests/unit/verify/plans.h"

namespace harpe::verifier {
namespace {

Checked<Model> model_of(const std::string& text) {
  const test::HandPlan hand(text);
  return Model::make(hand.plan.program, hand.plan.mesh, hand.plan.form);
}

// A copy along one axis of 64 elements; `lines` describe it on a mesh of `mesh`.
std::string copy_of(const std::string& axis, const std::string& mesh, const std::string& lines) {
  return "program share {\n  axis M = " + axis +
         "\n  buffer x : f32[M] in\n  buffer y : f32[M] out\n"
         "  nest move over (M) {\n    y = copy(x)\n  }\n}\nmesh one = " +
         mesh + "\ncommir one for share on one {\n" + lines + "  nest move {\n    leaf\n  }\n}\n";
}

std::vector<std::int64_t> begins(const std::string& text) {
  const Checked<Model> model = model_of(text);
  EXPECT_TRUE(model.ok()) << render(model.error());
  return model->axes.at(0).begin;
}

std::string refusal(const std::string& text) {
  const Checked<Model> model = model_of(text);
  return model.ok() ? "accepted" : render(model.error());
}

using Starts = std::vector<std::int64_t>;

TEST(Model, cuts_an_axis_evenly) {
  EXPECT_EQ(begins(copy_of("64", "gpu:2", "  split M = m0:4 * m1:_\n")), Starts({0, 16, 32, 48}));
}

TEST(Model, cuts_an_uneven_axis_at_multiples_of_its_unit) {
  // 100 elements, grain 8, 2 ranks: 13 units of 8 are fewer than 16, but 25 units of 4 are enough.
  EXPECT_EQ(begins(copy_of("100 grain 8", "gpu:2", "  split M = m0:3 * m1:_\n")),
            Starts({0, 32, 64}));
  // The grain is not a power of two, so units are 4, the next smaller one.
  EXPECT_EQ(begins(copy_of("100 grain 7", "gpu:2", "  split M = m0:3 * m1:_\n")),
            Starts({0, 32, 64}));
}

TEST(Model, leaves_blocks_empty_where_there_are_too_few_elements) {
  const auto model = model_of(copy_of("3", "gpu:2", "  split M = m0:4 * m1:_\n"));
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->axes[0].begin, Starts({0, 0, 1, 2}));
  EXPECT_EQ(model->axes[0].end, Starts({0, 1, 2, 3}));
  EXPECT_TRUE(model->buffers[0].is_empty(0));
  EXPECT_FALSE(model->buffers[0].is_empty(1));
}

TEST(Model, lays_an_axis_out_in_zigzag) {
  EXPECT_EQ(
      begins(copy_of("64", "gpu:2", "  split M = m0:2 * mh:2 * m1:_\n  layout M zigzag(m0, mh)\n")),
      Starts({0, 48, 16, 32}));
}

TEST(Model, keeps_the_rest_of_the_digits_within_a_zigzag) {
  EXPECT_EQ(begins(copy_of("64", "gpu:2",
                           "  split M = m0:2 * mh:2 * m1:2 * m2:_\n  layout M zigzag(m0, mh)\n")),
            Starts({0, 8, 48, 56, 16, 24, 32, 40}));
}

TEST(Model, lays_an_axis_out_in_stripes) {
  EXPECT_EQ(
      begins(copy_of("64", "gpu:2", "  split M = m0:2 * m1:2 * m2:_\n  layout M stripe(m0)\n")),
      Starts({0, 32, 16, 48}));
}

TEST(Model, lays_an_axis_out_by_a_table) {
  EXPECT_EQ(
      begins(copy_of("64", "gpu:2", "  split M = m0:4 * m1:_\n  layout M table(2, 0, 3, 1)\n")),
      Starts({32, 0, 48, 16}));
}

TEST(Model, reads_homes_on_refined_mesh_axes) {
  const auto model = model_of(copy_of("64", "node:2, gpu:4",
                                      "  refine gpu = a:2 * b:2\n  split M = m0:4 * m1:_\n"
                                      "  place x[m0@(b, node)]\n"));
  ASSERT_TRUE(model.ok()) << render(model.error());
  EXPECT_EQ(model->mesh.size(), 3U);
  EXPECT_EQ(model->ranks, 8);
  // Rank 6 is node 1, a 1, b 0: coordinate b * 2 + node = 1.
  EXPECT_TRUE(model->is_home(0, RankId(6), 1));
  EXPECT_FALSE(model->is_home(0, RankId(6), 2));
  EXPECT_TRUE(model->is_home(1, RankId(6), 2)) << "y is replicated";
}

TEST(Model, hides_blocks_above_the_diagonal) {
  const test::Masked p;
  const auto model = Model::make(p.hand.plan.program, p.hand.plan.mesh, p.hand.plan.form);
  ASSERT_TRUE(model.ok());
  // 32 queries, 16 keys, bottom-right aligned: queries 0..15 see no key.
  const std::vector<std::int32_t> first = {0, 0, 0, 0, 0, 0};
  const std::vector<std::int32_t> second = {0, 0, 0, 1, 0, 0};
  EXPECT_TRUE(model->is_masked(model->statements[0], first));
  EXPECT_FALSE(model->is_masked(model->statements[0], second));
}

TEST(Model, refuses_a_form_that_does_not_fit) {
  const auto with = [](const std::string& lines) { return refusal(copy_of("64", "gpu:2", lines)); };
  EXPECT_EQ(with("  split X = m0:2 * m1:_\n"),
            "error[V201]: normal form `one` does not fit its program and mesh: it splits axis `X`, "
            "which the program lacks");
  EXPECT_EQ(
      with("  split M = m0:2 * m1:_\n  place x[n0@gpu]\n"),
      "error[V201]: normal form `one` does not fit its program and mesh: `n0` is no digit of `x`");
  EXPECT_EQ(with("  split M = m0:2 * m1:_\n  place z[m0@gpu]\n"),
            "error[V201]: normal form `one` does not fit its program and mesh: it places buffer "
            "`z`, which the program lacks");
  EXPECT_EQ(with("  split M = m0:4 * m1:_\n  place x[m0@gpu]\n"),
            "error[V201]: normal form `one` does not fit its program and mesh: the home of `x` "
            "puts the 4 values of `m0` on 2 coordinates");
  EXPECT_EQ(with("  split M = m0:2 * m1:_\n  place x[m0@tpu]\n"),
            "error[V201]: normal form `one` does not fit its program and mesh: the home of `x` "
            "names mesh axis `tpu`, which the mesh lacks");
  EXPECT_EQ(with("  split M = m0:2 * m1:2\n  place x[m0@gpu, m1@gpu]\n"),
            "error[V201]: normal form `one` does not fit its program and mesh: the home of `x` "
            "names mesh axis `gpu` twice");
  EXPECT_EQ(with("  refine gpu = a:3 * b:2\n"),
            "error[V201]: normal form `one` does not fit its program and mesh: a part of `gpu`");
  EXPECT_EQ(with("  split M = m0:2 * m1:_\n  layout M zigzag(m0)\n"),
            "error[V201]: normal form `one` does not fit its program and mesh: layout `zigzag` of "
            "axis `M` has arguments it cannot take");
  EXPECT_EQ(with("  split M = m0:2 * m1:3 * m2:_\n  layout M zigzag(m0, m1)\n"),
            "error[V201]: normal form `one` does not fit its program and mesh: the second digit of "
            "a zigzag has two values, `M`'s has 3");
  EXPECT_EQ(with("  split M = m0:2 * m1:_\n  layout M table(0, 0)\n"),
            "error[V201]: normal form `one` does not fit its program and mesh: the table of axis "
            "`M` is no permutation");
}

TEST(Model, refuses_what_it_has_no_rule_for) {
  EXPECT_EQ(refusal(copy_of("64", "gpu:2", "  place x[] partial sum@gpu\n")),
            "error[V202]: a partial home of `x`, which is no output, cannot be verified");
}

TEST(Model, refuses_more_blocks_than_it_enumerates) {
  EXPECT_EQ(refusal(copy_of("64", "gpu:2", "  split M = m0:5000 * m1:5000 * m2:_\n")),
            "error[V203]: axis `M` has more than 16777216 blocks, too many to check one by one; "
            "verify at level `reduced`");
}

}  // namespace
}  // namespace harpe::verifier
