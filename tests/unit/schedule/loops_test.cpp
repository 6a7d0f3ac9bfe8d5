// parallelize, serialize, replicate, shift, reverse, reorder: loops of a nest.

#include "tests/unit/schedule/world.h"

namespace harpe {
namespace loops_test {

constexpr std::string_view kTiled =
    "tile(Sq, [2, 8]) -> q0, q1, q2 tile(Skv, [2, 8]) -> k0, k1, k2 ";

// The items of nest `fwd` of the attention program on two levels.
std::string nest(std::string_view steps) {
  const std::string form = form_after("attn", "two", std::string(kTiled) + std::string(steps));
  const std::size_t begin = form.find("  nest fwd {\n");
  return begin == std::string::npos ? form : form.substr(begin + 13);
}
std::string refuse(std::string_view steps) {
  return refusal_of("attn", "two", std::string(kTiled) + std::string(steps));
}
std::string refuse_scan(std::string_view steps) {
  return refusal_of("scan", "two", "tile(T, [2, 8]) -> t0, t1, t2 " + std::string(steps));
}

TEST(Parallelize, puts_digits_on_mesh_axes) {
  EXPECT_EQ(nest("parallelize(fwd, q0, node) parallelize(fwd, q1, gpu)"),
            "    par q0 on node\n    par q1 on gpu\n    leaf\n  }\n");
  EXPECT_EQ(form_after("attn", "two", "tile(Sq, [16]) -> q0, q1 parallelize(fwd, q0, [node, gpu])")
                    .find("par q0 on (node, gpu)") != std::string::npos,
            true);
}

TEST(Parallelize, stands_before_loops_and_moves_whenever_it_is_said) {
  EXPECT_EQ(
      nest("parallelize(fwd, q0, node) serialize(fwd, k1) stage(fwd, V, over=[gpu], how=bulk) "
           "parallelize(fwd, q1, gpu)"),
      "    par q0 on node\n    par q1 on gpu\n    stage V over gpu bulk\n    for k1\n    leaf\n"
      "  }\n");
}

TEST(Parallelize, refuses_digits_the_nest_cannot_bind) {
  EXPECT_EQ(refuse("parallelize(bwd, q0, node)"),
            "error[S011]: the program has no nest called `bwd` (did you mean `fwd`?)");
  EXPECT_EQ(refuse("parallelize(fwd, q3, node)"),
            "error[S013]: no digit is called `q3` (did you mean `q0`?); tile its axis first");
  EXPECT_EQ(
      refuse("parallelize(fwd, q2, node)"),
      "error[S202]: parallelize: digit `q2` has 1 blocks and `node` has 2 ranks; tile the axis "
      "by the number of ranks");
  EXPECT_EQ(refusal_of("scan", "two", "tile(T, [8]) -> t0, t1 parallelize(third, t0, gpu)"),
            "error[S022]: `t0` is a digit of `T`, which nest `third` does not run over");
  EXPECT_EQ(refuse("tile(D, [2]) -> d0, d1 parallelize(fwd, d0, node)"),
            "error[S023]: `d0` is a digit of `D`, which is whole in nest `fwd`");
  EXPECT_EQ(refuse("serialize(fwd, q0) parallelize(fwd, q0, node)"),
            "error[S024]: digit `q0` is already bound in nest `fwd`, by a `for`");
  EXPECT_EQ(refuse("chunk(fwd, leaf, q0) parallelize(fwd, q0, node)"),
            "error[S024]: digit `q0` is already bound in nest `fwd`, by a `leaf chunk`");
  EXPECT_EQ(
      refuse_scan("parallelize(first, t0, node)"),
      "error[S201]: parallelize: `t0` is a digit of `T`, which is sequential in nest `first`; "
      "serialize it");
}

TEST(Parallelize, refuses_mesh_axes_that_do_not_fit) {
  EXPECT_EQ(
      refuse("parallelize(fwd, q1, node)"),
      "error[S202]: parallelize: digit `q1` has 8 blocks and `node` has 2 ranks; tile the axis "
      "by the number of ranks");
  EXPECT_EQ(refuse("parallelize(fwd, q0, node) parallelize(fwd, k0, node)"),
            "error[S203]: parallelize: mesh axis `node` already runs `q0` in nest `fwd`");
  EXPECT_EQ(refuse("parallelize(fwd, q0, nodes)"),
            "error[S014]: the mesh has no axis called `nodes` (did you mean `node`?)");
  EXPECT_EQ(refuse("parallelize(fwd, q0, [])"),
            "error[S015]: no mesh axis is given, where `node` and `gpu` could be");
  EXPECT_EQ(refuse("parallelize(fwd, q0, [node, node])"),
            "error[S016]: mesh axis `node` occurs twice in `(node, node)`");
}

TEST(Parallelize, refuses_to_leave_a_chunked_move_one_chunk) {
  EXPECT_EQ(refuse("stage(fwd, K, over=[gpu], how=bulk) chunk(fwd, K, over=[gpu], by=k0) "
                   "parallelize(fwd, k0, node)"),
            "error[S204]: parallelize: the move of `K` over `gpu` is chunked by `k0`; chunk it by "
            "another digit");
}

TEST(Serialize, adds_the_innermost_loop) {
  EXPECT_EQ(nest("serialize(fwd, k0) serialize(fwd, k1)"),
            "    for k0\n    for k1\n    leaf\n  }\n");
  EXPECT_EQ(nest("serialize(fwd, k2)"), "    for k2\n    leaf\n  }\n");  // of one step
}

TEST(Serialize, refuses_bound_digits_and_broken_sequences) {
  EXPECT_EQ(refuse("parallelize(fwd, q0, node) serialize(fwd, q0)"),
            "error[S024]: digit `q0` is already bound in nest `fwd`, by a `par`");
  EXPECT_EQ(refuse_scan("serialize(first, t1) serialize(first, t0)"),
            "error[S211]: serialize: `t0` would run inside `t1`, a less significant digit of the "
            "sequential axis `T` in nest `first`; serialize it first");
  EXPECT_EQ(refuse_scan("serialize(first, t0) serialize(first, t1)"), "accepted");
}

TEST(Replicate, changes_nothing_and_says_so) {
  EXPECT_EQ(nest("parallelize(fwd, q1, gpu) replicate(fwd, node)"),
            nest("parallelize(fwd, q1, gpu)"));
  const auto* program = find_item<Program>(example_file(), "attn");
  const auto* mesh = find_item<Mesh>(example_file(), "two");
  const auto facts = check(start_schedule(*program, *mesh, "s"), Replicate{"fwd", {"node", "gpu"}});
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->copies, 16);
}

TEST(Replicate, refuses_an_axis_that_divides_the_work) {
  EXPECT_EQ(refuse("parallelize(fwd, q0, node) replicate(fwd, node)"),
            "error[S221]: replicate: mesh axis `node` runs `q0` in nest `fwd`");
}

TEST(Shift, skews_a_loop_and_takes_the_skew_away) {
  EXPECT_EQ(nest("serialize(fwd, k1) shift(fwd.k1, [gpu])"),
            "    for k1 skew gpu\n    leaf\n  }\n");
  EXPECT_EQ(nest("serialize(fwd, k1) shift(fwd.k1, gpu, 3)"),
            "    for k1 skew gpu + 3\n    leaf\n  }\n");
  EXPECT_EQ(nest("serialize(fwd, k1) shift(fwd.k1, [gpu], 1) shift(fwd.k1, [])"),
            "    for k1\n    leaf\n  }\n");
}

TEST(Shift, takes_outer_loops_and_several_axes_as_terms) {
  EXPECT_EQ(nest("serialize(fwd, k0) serialize(fwd, k1) shift(fwd.k1, [gpu, k0])"),
            "    for k0\n    for k1 skew (gpu, k0)\n    leaf\n  }\n");
}

TEST(Shift, refuses_terms_that_do_not_stand_still) {
  constexpr std::string_view kLoops = "serialize(fwd, k0) serialize(fwd, k1) ";
  EXPECT_EQ(
      refuse("shift(fwd.k0, [node])"),
      "error[S019]: `k0` is not a loop of nest `fwd`, whose loops are nothing; serialize it first");
  EXPECT_EQ(refuse(std::string(kLoops) + "shift(fwd.k0, [k1])"),
            "error[S231]: shift: `k1` is neither a mesh axis nor the digit of a loop around `k0`");
  EXPECT_EQ(refuse(std::string(kLoops) + "shift(fwd.k1, [gpu, gpu])"),
            "error[S232]: shift: `gpu` occurs twice in the skew of `k1`");
  EXPECT_EQ(
      refuse(std::string(kLoops) + "shift(fwd.k0, [gpu])"),
      "error[S233]: shift: 8 ranks do not divide the 2 steps of `k0`; tile the axis by a multiple "
      "of the number of ranks");
  EXPECT_EQ(refuse_scan("serialize(first, t0) shift(first.t0, [node])"),
            "error[S234]: shift: `t0` is a digit of `T`, which is sequential in nest `first`");
  EXPECT_EQ(refuse(std::string(kLoops) + "shift(fwd.k1, [gpu], -1)"),
            "error[S235]: shift: offset -1 of `k1` is negative; add the extent to it");
  EXPECT_EQ(
      refuse(std::string(kLoops) + "shift(fwd.k1, [gpu], 1) shift(fwd.k1, [gpu], 1)"),
      "error[S008]: nothing would change: `for k1` already has skew `gpu` + 1; drop the step");
}

constexpr std::string_view kRelay =
    "shard(K, k1, gpu) serialize(fwd, k1) shift(fwd.k1, [gpu]) "
    "stage(fwd, K, over=[gpu], at=k1, how=relay, by=src) ";

TEST(Shift, keeps_the_rotation_a_relay_stands_on) {
  EXPECT_EQ(
      refuse(std::string(kRelay) + "shift(fwd.k1, [])"),
      "error[S236]: shift: `k1` carries a relay: the relay of `K` over `gpu` needs `for k1` to be "
      "skewed by `gpu`, and it is not skewed; shift before the stage or drain, or choose "
      "`how=direct`");
  EXPECT_EQ(refuse(std::string(kRelay) + "shift(fwd.k1, [gpu], 2)"), "accepted");
}

TEST(Reverse, turns_a_loop_round_and_back) {
  EXPECT_EQ(nest("serialize(fwd, k1) reverse(fwd.k1)"), "    for k1 rev\n    leaf\n  }\n");
  EXPECT_EQ(nest("serialize(fwd, k1) shift(fwd.k1, [gpu]) reverse(fwd.k1) reverse(fwd.k1)"),
            "    for k1 skew gpu\n    leaf\n  }\n");
}

TEST(Reverse, refuses_sequences_and_relays) {
  EXPECT_EQ(refuse_scan("serialize(first, t0) reverse(first.t0)"),
            "error[S241]: reverse: `t0` is a digit of `T`, which is sequential in nest `first`");
  EXPECT_EQ(
      refuse(std::string(kRelay) + "reverse(fwd.k1)"),
      "error[S242]: reverse: `k1` carries a relay: the relay of `K` over `gpu` needs `for k1` to "
      "run forwards, and it is reversed; choose `how=direct`");
}

TEST(Reorder, takes_the_moves_of_a_loop_with_it) {
  EXPECT_EQ(
      nest("serialize(fwd, k0) serialize(fwd, k1) stage(fwd, V, over=[node], at=k0, how=bulk) "
           "stage(fwd, K, over=[gpu], at=k1, how=bulk) stage(fwd, Q, over=[gpu], how=bulk) "
           "reorder(fwd, [k1, k0])"),
      "    stage Q over gpu bulk\n    for k1\n    stage K over gpu bulk\n    for k0\n"
      "    stage V over node bulk\n    leaf\n  }\n");
}

TEST(Reorder, refuses_what_is_no_legal_permutation) {
  constexpr std::string_view kLoops = "serialize(fwd, k0) serialize(fwd, k1) ";
  EXPECT_EQ(
      refuse(std::string(kLoops) + "reorder(fwd, [k1])"),
      "error[S251]: reorder: `k1` are not the loops of nest `fwd`, `k0` and `k1`, rearranged");
  EXPECT_EQ(
      refuse(std::string(kLoops) + "reorder(fwd, [k0, k1])"),
      "error[S008]: nothing would change: the loop order of nest `fwd` already has `k0` and `k1`; "
      "drop the step");
  EXPECT_EQ(refuse(std::string(kLoops) + "shift(fwd.k1, [k0]) reorder(fwd, [k1, k0])"),
            "error[S252]: reorder: `k1` is skewed by `k0`, which would run inside it");
  EXPECT_EQ(refuse_scan("serialize(first, t0) serialize(first, t1) reorder(first, [t1, t0])"),
            "error[S253]: reorder: `t0` would run inside `t1`, a less significant digit of the "
            "sequential axis `T`");
  EXPECT_EQ(
      refuse(std::string(kLoops) + "stage(fwd, V, over=[gpu], at=k0, how=bulk) "
                                   "chunk(fwd, V, over=[gpu], by=k1) reorder(fwd, [k1, k0])"),
      "error[S254]: reorder: the move of `V` over `gpu` is chunked by `k1`, whose loop would run "
      "around it; chunk it by another digit");
}

}  // namespace loops_test
}  // namespace harpe
