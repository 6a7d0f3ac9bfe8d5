// shard and partial: homes.

#include "tests/unit/schedule/world.h"

namespace harpe {
namespace homes_test {

constexpr std::string_view kTiled = "tile(Sq, [2, 8]) -> q0, q1, q2 ";

std::string refuse(std::string_view steps) {
  return refusal_of("attn", "two", std::string(kTiled) + std::string(steps));
}

TEST(Shard, adds_to_the_home_of_a_buffer) {
  const std::string form =
      form_after("attn", "two", std::string(kTiled) + "shard(Q, q0, node) shard(Q, q1, gpu)");
  EXPECT_NE(form.find("  place Q[q0@node, q1@gpu]\n  place K[]\n"), std::string::npos) << form;
}

TEST(Shard, sees_several_mesh_axes_as_one) {
  const std::string form =
      form_after("attn", "two", "tile(Sq, [16]) -> q0, q1 shard(Q, q0, [node, gpu])");
  EXPECT_NE(form.find("  place Q[q0@(node, gpu)]\n"), std::string::npos) << form;
}

TEST(Shard, gives_a_temporary_a_home_of_its_own) {
  const std::string form =
      form_after("scan", "one", "tile(R, [8]) -> r0, r1 shard(t, r0, gpu) shard(x, r0, gpu)");
  EXPECT_NE(
      form.find("  place x[r0@gpu]\n  place i[]\n  place r[]\n  place s[]\n  place t[r0@gpu]\n"
                "  place y[]\n  place z[]\n"),
      std::string::npos)
      << form;
}

TEST(Shard, refuses_digits_and_axes_that_do_not_fit) {
  EXPECT_EQ(refuse("shard(X, q0, node)"),
            "error[S012]: the program has no buffer called `X` (did you mean `Q`?)");
  EXPECT_EQ(
      refuse("shard(K, q0, node)"),
      "error[S301]: shard: `q0` is a digit of `Sq`, and the axes of `K` are `B`, `Skv`, `Hkv` and "
      "`D`");
  EXPECT_EQ(
      refuse("shard(Q, q0, gpu)"),
      "error[S302]: shard: digit `q0` has 2 blocks and `gpu` has 8 ranks; tile the axis by the "
      "number of ranks");
  EXPECT_EQ(
      refuse("shard(Q, q2, gpu)"),
      "error[S302]: shard: digit `q2` has 1 blocks and `gpu` has 8 ranks; tile the axis by the "
      "number of ranks");
  EXPECT_EQ(refuse("tile(B, [2]) -> b0, b1 shard(Q, q0, node) shard(Q, b0, node)"),
            "error[S303]: shard: mesh axis `node` already holds another part of `Q`");
  EXPECT_EQ(refuse("refine(two, gpu, [2, 4]) -> x, y shard(Q, q0, node) shard(Q, q0, x)"),
            "error[S304]: shard: digit `q0` of `Q` already lives on `node`");
  EXPECT_EQ(refuse("shard(Q, q0, tp)"),
            "error[S014]: the mesh has no axis called `tp` (did you mean `gpu`?)");
}

TEST(Partial, leaves_states_at_home) {
  const std::string form = form_after("attn", "two",
                                      std::string(kTiled) +
                                          "shard(O, q0, node) partial(O, lse, gpu) "
                                          "partial(L, lse, [node, gpu])");
  EXPECT_NE(form.find("  place O[q0@node] partial lse@gpu\n  place L[] partial lse@(node, gpu)\n"),
            std::string::npos)
      << form;
}

TEST(Partial, refuses_buffers_that_have_no_partial_states) {
  EXPECT_EQ(refuse("partial(Q, lse, gpu)"), "error[S311]: partial: `Q` is an `in` buffer");
  EXPECT_EQ(refuse("partial(O, sum, gpu)"),
            "error[S312]: partial: no statement writes `O` under `sum`");
  EXPECT_EQ(refuse("shard(O, q0, node) partial(O, lse, [node, gpu])"),
            "error[S313]: partial: mesh axis `node` is already in the home of `O`");
  EXPECT_EQ(refuse("partial(O, lse, gpu) shard(O, q1, gpu)"),
            "error[S303]: shard: mesh axis `gpu` already holds another part of `O`");
}

}  // namespace homes_test
}  // namespace harpe
