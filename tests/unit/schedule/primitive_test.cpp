#include "schedule/primitive.h"

#include <algorithm>

#include "tests/unit/schedule/world.h"

namespace harpe {
namespace primitive_test {

std::string refuse(std::string_view step) { return refusal_of("attn", "two", step); }

TEST(Primitive, is_listed_with_its_usage) {
  const std::vector<PrimitiveInfo> all = all_primitives();
  EXPECT_EQ(all.size(), 24U);
  const auto usage = [&](std::string_view name) {
    return std::ranges::find(all, name, &PrimitiveInfo::name)->usage;
  };
  EXPECT_EQ(usage("tile"), "tile(axis, factors) -> digits");
  EXPECT_EQ(usage("stage"), "stage(nest, buffers, over=, how=[, at=, by=])");
  EXPECT_EQ(usage("shift"), "shift(loop, axes[, offset])");
}

TEST(Primitive, refuses_a_name_it_does_not_know) {
  EXPECT_EQ(refuse("tyle(Sq, [8]) -> q0, q1"),
            "error[S001]: no primitive is called `tyle` (did you mean `tile`?)");
}

TEST(Primitive, refuses_arguments_that_do_not_fit_its_fields) {
  EXPECT_EQ(refuse("tile(Sq) -> q0"),
            "error[S002]: `tile` lacks its argument `factors`: tile(axis, factors) -> digits");
  EXPECT_EQ(refuse("stage(fwd, K, over=[gpu], how=bulk, depth=2)"),
            "error[S003]: `stage` has no argument called `depth`: "
            "stage(nest, buffers, over=, how=[, at=, by=])");
  EXPECT_EQ(refuse("bind(fwd, K, ofer=[gpu], via=ce)"),
            "error[S003]: `bind` has no argument called `ofer` (did you mean `over`?): "
            "bind(nest, buffers, over=, via=[, move=])");
  EXPECT_EQ(refuse("tile(Sq, 8) -> q0, q1"),
            "error[S004]: argument `factors` of `tile` is a list of integers, and `8` is given");
  EXPECT_EQ(refuse("stage(fwd, K, over=[gpu], how=relais)"),
            "error[S004]: argument `how` of `stage` is one of `bulk` `relay` `direct` `inline` "
            "`one_shot`, and "
            "`relais` is given");
  EXPECT_EQ(refuse("parallelize(fwd, q0, gpu, node)"),
            "error[S005]: `parallelize` takes 3 arguments by position, and 4 are given: "
            "parallelize(nest, digit, axes)");
  EXPECT_EQ(refuse("serialize(fwd, k0, nest=fwd)"),
            "error[S006]: argument `nest` of `serialize` is given twice");
  EXPECT_EQ(refuse("serialize(fwd, k0) -> k1"),
            "error[S007]: `serialize` makes nothing that `-> k1` could name; drop the `->`");
}

TEST(Primitive, takes_positional_arguments_by_name_too) {
  EXPECT_EQ(form_after("attn", "one", "tile(factors=[8], axis=Sq) -> q0, q1").substr(0, 27),
            "  split Sq = q0:8 * q1:_\n  ");
}

TEST(Primitive, survives_the_way_to_text_and_back) {
  const std::vector<Primitive> all = {
      Tile{"Sq", {2, 8}, {"q0", "q1", "q2"}},
      Join{"q0", "q1", {"q"}},
      Join{"Sq", std::nullopt, {}},
      RefineAxis{"two", "gpu", {4, 2}, {"a", "b"}},
      Shard{"K", "k0", {"node", "gpu"}},
      Partial{"O", Monoid::Lse, {"gpu"}},
      Balance{"Sq", BalanceKind::Zigzag, LayoutArgs{Name{"q0"}, Name{"qh"}}},
      Balance{"Sq", BalanceKind::Table, LayoutArgs{std::int64_t{1}, std::int64_t{0}}},
      RouteLayout{"R", RouteLayoutKind::Slab, {"c0", "t0"}},
      Balance{"Sq", BalanceKind::None, std::nullopt},
      Parallelize{"fwd", "q0", {"gpu"}},
      Serialize{"fwd", "k0"},
      Replicate{"fwd", {"node"}},
      Shift{{"fwd", "k0"}, {"gpu"}, 1},
      Shift{{"fwd", "k0"}, {}, std::nullopt},
      Reverse{{"fwd", "k0"}},
      Reorder{"fwd", {"k1", "k0"}},
      Stage{"fwd", {"K"}, {"gpu"}, "k0", How::Relay, Initiator::Src},
      Drain{"fwd", {"O", "L"}, {"node", "gpu"}, std::nullopt, How::Bulk, std::nullopt},
      Pipeline{"fwd", {"K"}, {"gpu"}, MoveKind::Stage, 2},
      ChunkMove{"fwd", {"K"}, {"gpu"}, std::nullopt, "k1"},
      ChunkLeaf{"fwd", "leaf", "k1", std::vector<std::string>{"k0", "gpu"}},
      Bind{"fwd", {"K"}, {"gpu"}, std::nullopt, Via::Proxy},
      SignalBy{"fwd", {"K"}, {"gpu"}, std::nullopt, Signal::Flag, Fence::PerDestination},
      Compress{"fwd", {"K"}, {"gpu"}, MoveKind::Drain, DType::F8E4M3},
      Patch{"fwd", Quoted{"fa_fwd_sm90"}, 132},
      Budget{"fwd", std::nullopt, std::nullopt, std::nullopt, 12},
      FuseNests{"k", {"a", "b"}, true, 132, 8}};
  for (const Primitive& primitive : all) {
    const Step step = to_step(primitive);
    const Checked<Primitive> back = read_step(step);
    ASSERT_TRUE(back.ok()) << print(step) << ": " << render(back.error());
    EXPECT_EQ(*back, primitive) << print(step);
    const Script script = script_of("attn", "one", print(step));
    EXPECT_EQ(script.steps.at(0), step);
  }
}

TEST(Replay, says_which_step_of_which_schedule_was_refused) {
  const Script script = script_of("attn", "one", "tile(Sq, [8]) -> q0, q1 shard(K, q0, gpu)");
  const Checked<NormalForm> form = replay_example(script);
  ASSERT_FALSE(form.ok());
  EXPECT_EQ(
      render(form.error()),
      "error[S301]: shard: `q0` is a digit of `Sq`, and the axes of `K` are `B`, `Skv`, `Hkv` "
      "and `D`\n"
      "  note: in step 2 of schedule `s`: shard(K, q0, gpu)");
}

TEST(Replay, refuses_another_program_or_mesh) {
  const auto* program = find_item<Program>(example_file(), "attn");
  const auto* mesh = find_item<Mesh>(example_file(), "one");
  const Script other = script_of("gemm", "one", "");
  EXPECT_EQ(render(replay(*program, *mesh, other).error()),
            "error[S009]: schedule `s` is for program `gemm`, not for `attn`");
  const Script elsewhere = script_of("attn", "two", "");
  EXPECT_EQ(render(replay(*program, *mesh, elsewhere).error()),
            "error[S010]: schedule `s` is for mesh `two`, not for `one`");
}

}  // namespace primitive_test
}  // namespace harpe
