// tile, join, refine, balance: the forms that they make, and every reason for a refusal.

#include "tests/unit/schedule/world.h"

namespace harpe {
namespace axes_test {

constexpr std::string_view kEmptyHomes =
    "  place Q[]\n  place K[]\n  place V[]\n  place O[]\n  place L[]\n  nest fwd {\n    leaf\n  "
    "}\n";

std::string form(std::string_view steps) { return form_after("attn", "two", steps); }
std::string refuse(std::string_view steps) { return refusal_of("attn", "two", steps); }
std::string with_homes(std::string_view splits) {
  return std::string(splits) + std::string(kEmptyHomes);
}

TEST(Tile, splits_an_axis_with_and_without_a_remainder) {
  EXPECT_EQ(form("tile(Sq, [2, 8]) -> q0, q1, q2 tile(Hkv, [8]) -> h0"),
            with_homes("  split Sq = q0:2 * q1:8 * q2:_\n  split Hkv = h0:8\n"));
}

TEST(Tile, does_not_ask_a_size_to_be_divisible) {
  EXPECT_EQ(form("tile(Hkv, [5, 7]) -> h0, h1, h2"),
            with_homes("  split Hkv = h0:5 * h1:7 * h2:_\n"));
  EXPECT_EQ(form("tile(B, [1]) -> b0, b1"), with_homes("  split B = b0:1 * b1:_\n"));
}

TEST(Tile, names_a_whole_axis_as_one_digit) {
  EXPECT_EQ(form("tile(B, []) -> b"), with_homes("  split B = b:_\n"));
}

TEST(Tile, refines_a_digit_in_place) {
  EXPECT_EQ(form("tile(Sq, [8]) -> q0, q1 tile(q1, [2]) -> qh, q2"),
            with_homes("  split Sq = q0:8 * qh:2 * q2:_\n"));
  EXPECT_EQ(form("tile(Sq, [12]) -> q0, q1 tile(q0, [2]) -> a, b tile(b, [3, 2]) -> c, d"),
            with_homes("  split Sq = a:2 * c:3 * d:2 * q1:_\n"));
}

TEST(Tile, refuses_what_is_neither_axis_nor_digit) {
  EXPECT_EQ(refuse("tile(Sx, [8]) -> q0"),
            "error[S101]: `Sx` is neither an axis of the program nor a digit");
}

TEST(Tile, refuses_an_axis_twice) {
  EXPECT_EQ(
      refuse("tile(Sq, [8]) -> q0, q1 tile(Sq, [2]) -> a, b"),
      "error[S102]: axis `Sq` is already tiled into `q0` and `q1`; tile one of its digits, or "
      "`join` the axis first");
}

TEST(Tile, refuses_factors_that_are_not_counts) {
  EXPECT_EQ(refuse("tile(Sq, [2, 0]) -> a, b, c"),
            "error[S103]: tile `Sq`: factor 0 is not a positive number");
  EXPECT_EQ(refuse("tile(Sq, [-2]) -> a"),
            "error[S103]: tile `Sq`: factor -2 is not a positive number");
}

TEST(Tile, refuses_more_blocks_than_it_can_reason_about) {
  EXPECT_EQ(
      refuse("tile(Sq, [1024, 1025]) -> a, b"),
      "error[S104]: tile: axis `Sq` would have more than 1048576 blocks; choose smaller factors");
  EXPECT_EQ(
      refuse("tile(Sq, [9223372036854775807, 3]) -> a, b"),
      "error[S104]: tile: axis `Sq` would have more than 1048576 blocks; choose smaller factors");
}

TEST(Tile, refuses_another_number_of_names_than_of_digits) {
  EXPECT_EQ(refuse("tile(Sq, [2, 8]) -> a"),
            "error[S105]: tile `Sq`: 1 names for 2 factors, where each factor needs one and one "
            "more may name a remainder");
}

TEST(Tile, refuses_a_digit_in_use) {
  EXPECT_EQ(
      refuse("tile(Sq, [8]) -> q0, q1 shard(Q, q0, gpu) tile(q0, [2, 4]) -> a, b"),
      "error[S106]: tile: digit `q0` is in use by the home of `Q`; move the `tile` step before "
      "that use");
  EXPECT_EQ(
      refuse("tile(Sq, [8]) -> q0, q1 parallelize(fwd, q0, gpu) tile(q0, [8]) -> a"),
      "error[S106]: tile: digit `q0` is in use by `par q0` of nest `fwd`; move the `tile` step "
      "before that use");
}

TEST(Tile, refuses_parts_that_do_not_make_the_digit) {
  EXPECT_EQ(
      refuse("tile(Sq, [8]) -> q0, q1 tile(q0, [3]) -> a, b"),
      "error[S107]: tile: digit `q0` has 8 blocks, and its factors make 3; choose factors of the "
      "extent");
  EXPECT_EQ(
      refuse("tile(Sq, [8]) -> q0, q1 tile(q0, [2]) -> a"),
      "error[S107]: tile: digit `q0` has 8 blocks, and its factors make 2; choose factors of the "
      "extent");
}

TEST(Tile, refuses_names_that_are_taken) {
  EXPECT_EQ(refuse("tile(Sq, [8]) -> q0, q1 tile(Skv, [8]) -> q0, k1"),
            "error[S021]: `q0` is already the name of a digit; choose another name");
  EXPECT_EQ(refuse("tile(Sq, [8]) -> gpu, q1"),
            "error[S021]: `gpu` is already the name of an axis of the mesh; choose another name");
  EXPECT_EQ(
      refuse("tile(Sq, [8]) -> Skv, q1"),
      "error[S021]: `Skv` is already the name of an axis of the program; choose another name");
  EXPECT_EQ(
      refuse("tile(Sq, [8]) -> q, q"),
      "error[S021]: `q` is already the name of another result of this step; choose another name");
}

TEST(Join, merges_neighbours_and_undoes_tile) {
  EXPECT_EQ(form("tile(Sq, [2, 4, 3]) -> a, b, c, r join(a, b) -> d"),
            with_homes("  split Sq = d:8 * c:3 * r:_\n"));
  EXPECT_EQ(form("tile(Sq, [2, 4]) -> a, b, r join(b, r) -> r"),
            with_homes("  split Sq = a:2 * r:_\n"));
  EXPECT_EQ(form("tile(Sq, [2, 4]) -> a, b, r join(Sq)"), with_homes(""));
}

TEST(Join, refuses_what_does_not_stand_side_by_side) {
  constexpr std::string_view kTiled = "tile(Sq, [2, 4]) -> a, b, r tile(Skv, [2]) -> c, s ";
  EXPECT_EQ(refuse(std::string(kTiled) + "join(b, a) -> d"),
            "error[S111]: join: `b` and `a` are not neighbouring digits of one axis; digits of "
            "different axes need no join: bind both to the parts of a refined mesh axis");
  EXPECT_EQ(refuse(std::string(kTiled) + "join(a, c) -> d"),
            "error[S111]: join: `a` and `c` are not neighbouring digits of one axis; digits of "
            "different axes need no join: bind both to the parts of a refined mesh axis");
  EXPECT_EQ(
      refuse(std::string(kTiled) + "shard(Q, a, node) join(a, b) -> d"),
      "error[S112]: join: digit `a` is in use by the home of `Q`; move the `join` step before "
      "that use");
  EXPECT_EQ(refuse(std::string(kTiled) + "join(a, b) -> d, e"),
            "error[S113]: join: 2 results are named where 1 are made");
  EXPECT_EQ(refuse(std::string(kTiled) + "join(Sq) -> d"),
            "error[S113]: join: 1 results are named where 0 are made");
  EXPECT_EQ(refuse("join(Sq)"), "error[S114]: join: axis `Sq` is not tiled");
  EXPECT_EQ(refuse("join(Sy)"),
            "error[S017]: the program has no axis called `Sy` (did you mean `Sq`?)");
  EXPECT_EQ(refuse(std::string(kTiled) + "join(a, b) -> c"),
            "error[S021]: `c` is already the name of a digit; choose another name");
  EXPECT_EQ(refuse(std::string(kTiled) + "join(a, x) -> d"),
            "error[S013]: no digit is called `x` (did you mean `a`?); tile its axis first");
}

TEST(Refine, sees_a_mesh_axis_as_several) {
  EXPECT_EQ(form("refine(two, gpu, [4, 2]) -> ring, uly tile(Sq, [2, 2]) -> q0, q1, q2 "
                 "shard(Q, q0, uly) shard(Q, q1, node)"),
            "  refine gpu = ring:4 * uly:2\n  split Sq = q0:2 * q1:2 * q2:_\n"
            "  place Q[q0@uly, q1@node]\n  place K[]\n  place V[]\n  place O[]\n  place L[]\n"
            "  nest fwd {\n    leaf\n  }\n");
}

TEST(Refine, refuses_what_it_cannot_factor) {
  EXPECT_EQ(refuse("refine(one, gpu, [4, 2]) -> a, b"),
            "error[S121]: refine: the mesh of this schedule is `two`, not `one`");
  EXPECT_EQ(refuse("refine(two, gqu, [4, 2]) -> a, b"),
            "error[S014]: the mesh has no axis called `gqu` (did you mean `gpu`?)");
  EXPECT_EQ(
      refuse("refine(two, gpu, [4, 2]) -> a, b refine(two, gpu, [2, 4]) -> c, d"),
      "error[S122]: refine: mesh axis `gpu` stems from an earlier refinement of `gpu`; give all "
      "factors at once");
  EXPECT_EQ(
      refuse("refine(two, gpu, [4, 2]) -> a, b refine(two, a, [2, 2]) -> c, d"),
      "error[S122]: refine: mesh axis `a` stems from an earlier refinement of `gpu`; give all "
      "factors at once");
  EXPECT_EQ(
      refuse("tile(Sq, [8]) -> q0, q1 shard(Q, q0, gpu) refine(two, gpu, [4, 2]) -> a, b"),
      "error[S123]: refine: mesh axis `gpu` is in use by the home of `Q`; move the `refine` step "
      "before that use");
  EXPECT_EQ(refuse("refine(two, gpu, [3, 2]) -> a, b"),
            "error[S124]: refine: mesh axis `gpu` has 8 ranks, and the factors are 3 * 2");
  EXPECT_EQ(refuse("refine(two, gpu, [8]) -> a"),
            "error[S124]: refine: mesh axis `gpu` has 8 ranks, and the factors are 8");
  EXPECT_EQ(refuse("refine(two, gpu, [4, 2]) -> a"),
            "error[S125]: refine `gpu`: 1 names for 2 factors");
  EXPECT_EQ(refuse("refine(two, gpu, [4, 2]) -> node, b"),
            "error[S021]: `node` is already the name of an axis of the mesh; choose another name");
}

TEST(Refine, retires_the_name_of_the_axis) {
  EXPECT_EQ(refuse("refine(two, gpu, [4, 2]) -> a, b tile(Sq, [8]) -> q0, q1 shard(Q, q0, gpu)"),
            "error[S014]: the mesh has no axis called `gpu` (refined into `a` and `b`)");
}

TEST(Balance, sets_replaces_and_removes_a_layout) {
  constexpr std::string_view kTiled = "tile(Sq, [8, 2]) -> q0, qh, q1 ";
  const std::string split = "  split Sq = q0:8 * qh:2 * q1:_\n";
  EXPECT_EQ(form(std::string(kTiled) + "balance(Sq, zigzag, [q0, qh])"),
            with_homes(split + "  layout Sq zigzag(q0, qh)\n"));
  EXPECT_EQ(form(std::string(kTiled) + "balance(Sq, zigzag, [q0, qh]) balance(Sq, stripe, [q0])"),
            with_homes(split + "  layout Sq stripe(q0)\n"));
  EXPECT_EQ(form("tile(Sq, [3]) -> q0, q1 balance(Sq, table, [2, 0, 1])"),
            with_homes("  split Sq = q0:3 * q1:_\n  layout Sq table(2, 0, 1)\n"));
  EXPECT_EQ(form(std::string(kTiled) + "balance(Sq, stripe, [q0]) balance(Sq, none)"),
            with_homes(split));
}

TEST(Balance, refuses_digits_that_make_no_layout) {
  constexpr std::string_view kTiled = "tile(Sq, [8, 2]) -> q0, qh, q1 tile(Skv, [8]) -> k0, k1 ";
  EXPECT_EQ(refuse(std::string(kTiled) + "balance(Sq, zigzag, [q0])"),
            "error[S131]: balance: `zigzag` takes a list of 2, and 1 are given");
  EXPECT_EQ(refuse(std::string(kTiled) + "balance(Sq, stripe, [k0])"),
            "error[S132]: balance: digit `k0` is one of `Skv`, not of `Sq`");
  EXPECT_EQ(refuse(std::string(kTiled) + "balance(Sq, zigzag, [qh, qh])"),
            "error[S133]: balance: zigzag names digit `qh` twice");
  EXPECT_EQ(
      refuse(std::string(kTiled) + "balance(Sq, zigzag, [qh, q0])"),
      "error[S134]: balance: zigzag's half digit `q0` has 8 values instead of 2; tile it by 2");
  EXPECT_EQ(refuse(std::string(kTiled) + "balance(Sq, stripe, [q1])"),
            "error[S018]: digit `q1` is the remainder of `Sq`, of one block; tile the axis with "
            "one factor more");
  EXPECT_EQ(refuse("balance(S, none)"),
            "error[S017]: the program has no axis called `S` (did you mean `B`?)");
}

TEST(Balance, refuses_tables_that_are_no_permutation_of_the_blocks) {
  const std::string refusal =
      "error[S135]: balance: the table is no permutation of the 3 blocks of `Sq`; tile the axis "
      "first, "
      "and list every number below its blocks once";
  for (const char* table :
       {"[0, 1]", "[0, 1, 1]", "[0, 1, 3]", "[0, 1, q0]", "[]", "[0, 1, 2, 3]"}) {
    EXPECT_EQ(refuse("tile(Sq, [3]) -> q0, q1 balance(Sq, table, " + std::string(table) + ")"),
              refusal)
        << table;
  }
}

TEST(Balance, holds_the_blocks_that_a_table_counts) {
  EXPECT_EQ(
      refuse("tile(Sq, [2]) -> q0, q1 balance(Sq, table, [1, 0]) tile(q1, [2]) -> a, b"),
      "error[S106]: tile: digit `q1` is in use by the layout of `Sq`; move the `tile` step before "
      "that use");
}

TEST(RouteLayout, ties_slots_to_their_sources) {
  const std::string form = form_after("moe", "one",
                                      "tile(T, [8]) -> t0, t1 tile(C, [8]) -> c0, c1 "
                                      "route_layout(R, slab, [c0, t0])");
  EXPECT_NE(form.find("  layout C slab(c0, t0)\n"), std::string::npos) << form;
}

TEST(RouteLayout, refuses_digits_that_are_no_pairs) {
  constexpr std::string_view kTiledMoe = "tile(T, [8]) -> t0, t1 tile(C, [8, 2]) -> c0, c1, c2 ";
  const auto moe = [&](std::string_view steps) {
    return refusal_of("moe", "one", std::string(kTiledMoe) + std::string(steps));
  };
  EXPECT_EQ(moe("route_layout(Q, slab, [c0, t0])"),
            "error[S141]: route_layout: the program has no route called `Q` (did you mean `R`?)");
  EXPECT_EQ(
      moe("route_layout(R, slab, [c0])"),
      "error[S142]: route_layout: `R` is given 1 digits, which make no pairs of slot and source");
  EXPECT_EQ(moe("route_layout(R, slab, [t0, c0])"),
            "error[S143]: route_layout: digit `t0` is one of `T`, not of `C`");
  EXPECT_EQ(
      moe("route_layout(R, slab, [c1, t0])"),
      "error[S144]: route_layout: `c1` has 2 blocks and its source `t0` has 8; tile both alike");
  EXPECT_EQ(moe("route_layout(R, compact, [c0, t0])"),
            "error[S145]: route_layout: compact slots of `R` are not built; choose `slab`");
  EXPECT_EQ(
      moe("route_layout(R, slab, [c0, t0]) route_layout(R, slab, [c0, t0])"),
      "error[S008]: nothing would change: the layout of `C` already has slab(c0, t0); drop the "
      "step");
}

TEST(Balance, refuses_to_change_nothing) {
  EXPECT_EQ(
      refuse("balance(Sq, none)"),
      "error[S008]: nothing would change: the layout of `Sq` already has mixed radix; drop the "
      "step");
  EXPECT_EQ(
      refuse("tile(Sq, [8]) -> q0, q1 balance(Sq, stripe, [q0]) balance(Sq, stripe, [q0])"),
      "error[S008]: nothing would change: the layout of `Sq` already has stripe(q0); drop the "
      "step");
}

}  // namespace axes_test
}  // namespace harpe
