#include "schedule/replay.h"

#include <algorithm>

#include "ir/text.h"
#include "tests/unit/schedule/world.h"

namespace harpe {
namespace {

const Program& program_of(const NormalForm& form) {
  const auto* program = find_item<Program>(example_file(), form.program);
  HP_CHECK(program != nullptr, "no example program " + form.program);
  return *program;
}

const Mesh& mesh_of(const NormalForm& form) {
  const auto* mesh = find_item<Mesh>(example_file(), form.mesh);
  HP_CHECK(mesh != nullptr, "no example mesh " + form.mesh);
  return *mesh;
}

TEST(Replay, makes_exactly_the_double_ring_of_the_model) {
  const auto* script = find_item<Script>(example_file(), "double_ring_script");
  ASSERT_NE(script, nullptr);
  Checked<NormalForm> form = replay_example(*script);
  ASSERT_TRUE(form.ok()) << render(form.error());
  form->name = "double_ring";
  const auto* expected = find_item<NormalForm>(example_file(), "double_ring");
  ASSERT_NE(expected, nullptr);
  EXPECT_EQ(*form, *expected);
  EXPECT_EQ(print(*form), print(*expected));
}

TEST(DeriveScript, gives_back_the_script_people_wrote) {
  const auto* script = find_item<Script>(example_file(), "double_ring_script");
  const auto* form = find_item<NormalForm>(example_file(), "double_ring");
  ASSERT_TRUE(script != nullptr && form != nullptr);
  Script derived = derive_script(program_of(*form), mesh_of(*form), *form);
  derived.name = "double_ring_script";
  EXPECT_EQ(print(derived), print(*script));
}

TEST(DeriveScript, replays_to_every_form_of_the_model) {
  std::size_t forms = 0;
  for (const NormalForm* form : items_of<NormalForm>(example_file())) {
    const Script script = derive_script(program_of(*form), mesh_of(*form), *form);
    const Checked<NormalForm> again = replay(program_of(*form), mesh_of(*form), script);
    ASSERT_TRUE(again.ok()) << form->name << ": " << render(again.error());
    const bool in_order = form->program != "moe";  // its places do not follow the program's order
    EXPECT_EQ(*again, in_order ? *form : canonicalise(program_of(*form), *form)) << print(script);
    ++forms;
  }
  EXPECT_EQ(forms, 30U);
}

TEST(DeriveScript, says_every_attribute) {
  const Script script = script_of(
      "gemm", "two",
      "tile(M, [2, 8, 4]) -> m0, m1, m2, m3 tile(N, [2, 8]) -> n0, n1, n2 tile(K, [2]) -> c0, c1 "
      "refine(two, gpu, [4, 2]) -> x, y "
      "shard(A, m0, node) shard(A, m1, [x, y]) partial(C, sum, node) balance(M, stripe, [m0]) "
      "parallelize(mm, n0, node) parallelize(mm, n1, [x, y]) serialize(mm, m0) serialize(mm, c0) "
      "shift(mm.m0, [node], 1) reverse(mm.c0) "
      "stage(mm, [A, B], over=[x, y], how=direct, by=src) "
      "stage(mm, A, over=[node], at=m0, how=relay, by=src) drain(mm, C, over=[node], how=bulk) "
      "pipeline(mm, A, over=[node], depth=2) pipeline(mm, A, over=[x, y], depth=4) "
      "chunk(mm, A, over=[x, y], by=m2) compress(mm, [A, B], over=[x, y], wire=f8e5m2) "
      "bind(mm, [A, B], over=[x, y], via=ibgda) bind(mm, C, over=[node], via=sm) "
      "signal(mm, [A, B], over=[x, y], kind=flag, fence=nic) "
      "budget(mm, C, over=[node], sm=20) chunk(mm, leaf, m2, order=[m1, x, y]) "
      "patch(mm, kernel=\"gemm_sm90\", sm=112) fuse(all, [mm], persistent=true, warps=4)");
  const Checked<NormalForm> form = replay_example(script);
  ASSERT_TRUE(form.ok()) << render(form.error());
  const Script derived = derive_script(program_of(*form), mesh_of(*form), *form);
  const Checked<NormalForm> again = replay_example(derived);
  ASSERT_TRUE(again.ok()) << render(again.error()) << print(derived);
  EXPECT_EQ(*again, *form) << print(derived);
}

TEST(Canonicalise, orders_what_the_text_leaves_free) {
  const auto* ring = find_item<NormalForm>(example_file(), "ring");
  ASSERT_NE(ring, nullptr);
  NormalForm mixed = *ring;
  std::ranges::reverse(mixed.places);
  mixed.places.pop_back();  // without a place Q, the last one, is replicated
  std::ranges::rotate(mixed.nests[0].items, mixed.nests[0].items.begin() + 1);  // par goes last
  NormalForm expected = *ring;
  expected.places[0].at.clear();
  EXPECT_EQ(canonicalise(program_of(*ring), mixed), expected);
  EXPECT_EQ(canonicalise(program_of(*ring), *ring), *ring);
}

}  // namespace
}  // namespace harpe
