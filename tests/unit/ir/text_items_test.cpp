#include <gtest/gtest.h>

#include "tests/unit/ir/text_support.h"

namespace harpe::ir_test {
namespace {

// Expects that `text` parses, prints as `canonical` (default: itself) and parses back equal.
Item expect_prints(const std::string& text, const std::string& canonical = "") {
  const Checked<Item> item = parse_text(text);
  EXPECT_TRUE(item.ok()) << text << (item.ok() ? "" : render(item.error()));
  if (!item.ok()) return Mesh{};
  const std::string printed = print_item(*item);
  EXPECT_EQ(printed, canonical.empty() ? text : canonical);
  const Checked<Item> again = parse_text(printed);
  EXPECT_TRUE(again.ok() && *again == *item) << printed;
  return *item;
}

const std::string kTemplate =
    "program attention {\n"
    "  param seq = 2048\n"
    "  param kv_seq = seq\n"
    "  param heads = 8\n"
    "  param kv_heads = heads\n"
    "  param causal : bool = false\n"
    "  param scale : float = 0.125\n"
    "  param dtype : dtype = bf16\n"
    "  axis Sq = seq grain 128\n"
    "  axis Skv = kv_seq grain 128\n"
    "  axis Hkv = kv_heads\n"
    "  axis G = heads/kv_heads\n"
    "  axis D = 64\n"
    "  buffer q : dtype[Sq, (Hkv, G), D] in\n"
    "  buffer k : dtype[Skv, Hkv, D] in\n"
    "  buffer v : dtype[Skv, Hkv, D] in\n"
    "  buffer o : dtype[Sq, (Hkv, G), D] out\n"
    "  buffer lse : f32[(Hkv, G), Sq] out\n"
    "  leaf attn_fwd flops 2*Hkv*G*Sq*Skv*D + 2*Hkv*G*Sq*Skv*D bytes seq*2 + 1 kernel \"fa fwd\"\n"
    "  nest fwd over (Hkv, G, Sq, Skv) whole (D) seq (Skv) {\n"
    "    (o, lse) lse= attn_fwd(q, k, v; scale=scale) where causal(Sq, Skv) if causal\n"
    "  }\n"
    "}\n";

TEST(TextItems, a_template_prints_as_written) {
  const auto program = std::get<Program>(expect_prints(kTemplate));
  EXPECT_EQ(program.params.at(1), (Param{"kv_seq", "", Name{"seq"}}));
  EXPECT_EQ(program.params.at(4), (Param{"causal", "bool", Name{"false"}}));
  EXPECT_EQ(find_axis(program, "G")->size, (Poly{Name{"heads"}, {{'/', Name{"kv_heads"}}}}));
  EXPECT_EQ(find_buffer(program, "q")->dtype_param, "dtype");
  EXPECT_EQ(find_buffer(program, "lse")->dtype_param, "");
  EXPECT_EQ(program.nests.at(0).stmts.at(0).masks.at(0).condition, "causal");
  EXPECT_EQ(find_leaf(program, "attn_fwd")->kernel, "fa fwd");
}

TEST(TextItems, spaces_of_a_polynomial_stand_around_plus_only) {
  expect_prints("program p {\n  param a = 4\n  axis M = a + 2*a/4+1\n}\n",
                "program p {\n  param a = 4\n  axis M = a + 2*a/4 + 1\n}\n");
}

TEST(TextItems, a_mask_list_keeps_its_conditions) {
  expect_prints(
      "program p {\n  param c : bool = true\n  axis M = 8\n  axis N = 8\n  buffer x : f32[M] in\n"
      "  buffer y : f32[M] out\n  nest n over (M, N) {\n"
      "    y sum= f(x) where causal(M, N) and window(M, N, 3) if c\n  }\n}\n");
}

TEST(TextItems, a_buffer_may_have_no_dimension_or_opaque_ones) {
  const auto program = std::get<Program>(
      expect_prints("program p {\n  axis M = 8\n  axis K = dyn 16 of M grain 4\n"
                    "  buffer x : f32[] in\n  buffer y : f8e4m3[(M), 4, K] out\n}\n"));
  EXPECT_EQ(find_buffer(program, "y")->dims.at(1), Dim(std::int64_t{4}));
  EXPECT_TRUE(find_axis(program, "K")->dynamic);
}

TEST(TextItems, the_exact_policy_is_not_printed_and_the_others_are) {
  const std::string before =
      "program p {\n  axis T = 8\n  axis E = 8\n  buffer i : i32[T] in\n  route R : (E) <- (T) by "
      "i";
  expect_prints(before + " exact load zipf(1.1, \"x\", 3)\n}\n",
                before + " load zipf(1.1, \"x\", 3)\n}\n");
  expect_prints(before + " drop\n}\n");
  expect_prints(before + " pad load uniform()\n}\n");
}

TEST(TextItems, scalars_keep_their_kind) {
  const std::string text =
      "program p {\n  axis M = 8\n  buffer x : f32[M] in\n  buffer y : f32[M] out\n"
      "  nest n over (M) {\n"
      "    y = f(x; a=-3, b=3.0, c=\"3\", d=three, e=1e-09, g=0.1, h=-2.5)\n  }\n}\n";
  const auto program = std::get<Program>(expect_prints(text));
  const auto& attrs = program.nests.at(0).stmts.at(0).attrs;
  EXPECT_EQ(attrs.at(0).second, Scalar(std::int64_t{-3}));
  EXPECT_EQ(attrs.at(1).second, Scalar(3.0));
  EXPECT_EQ(attrs.at(2).second, Scalar(std::string("3")));
  EXPECT_EQ(attrs.at(3).second, Scalar(Name{"three"}));
  EXPECT_EQ(attrs.at(4).second, Scalar(1e-9));
}

TEST(TextItems, renames_and_routes_are_kept) {
  expect_prints(
      "program p {\n  axis M = 8\n  axis N = 8\n  buffer x : f32[M] in\n  buffer i : i32[M] in\n"
      "  buffer y : f32[N] out\n  buffer z : f32[N] out\n  route R : (N) <- (M) by i\n"
      "  nest n over (N) {\n    y = copy(x[M=R.M])\n    z = copy(x[M=N])\n  }\n}\n");
}

const std::string kFormHead = "commir c for p on m {\n";

TEST(TextItems, attributes_of_a_move_print_in_one_order) {
  const auto form = std::get<NormalForm>(expect_prints(
      kFormHead +
          "  nest n {\n    stage A over (node, gpu) direct sm 4 fence nic signal batched "
          "via ibgda wire f8e5m2 grain m1 depth 3 by dst\n    leaf order skew(m0, gpu) chunk m1 "
          "sm 100 kernel \"k\"\n  }\n  fuse f = n, n warps 4 sm 3 persistent\n}\n",
      kFormHead +
          "  nest n {\n    stage A over (node, gpu) direct by dst depth 3 grain m1 wire f8e5m2 "
          "via ibgda signal batched fence nic sm 4\n    leaf kernel \"k\" sm 100 chunk m1 order "
          "skew(m0, gpu)\n  }\n  fuse f = n, n persistent sm 3 warps 4\n}\n"));
  const auto& move = std::get<Move>(form.nests.at(0).items.at(0));
  EXPECT_EQ(move.over, (MeshRef{"node", "gpu"}));
  EXPECT_EQ(move.wire, DType::F8E5M2);
  EXPECT_EQ(move.fence, Fence::NicOrdered);
}

TEST(TextItems, an_attribute_that_is_not_written_is_not_there) {
  const auto form =
      std::get<NormalForm>(expect_prints(kFormHead + "  nest n {\n    drain C over gpu bulk\n"
                                                     "    leaf\n  }\n}\n"));
  const auto& move = std::get<Move>(form.nests.at(0).items.at(0));
  Move bare;
  bare.kind = MoveKind::Drain;
  bare.buffer = "C";
  bare.over = {"gpu"};
  EXPECT_EQ(move, bare);
  EXPECT_EQ(form.nests.at(0).leaf, LeafChoice{});
}

TEST(TextItems, every_word_of_every_attribute_reads_back) {
  for (const char* const how : {"bulk", "relay", "direct", "inline", "one_shot"}) {
    for (const char* const via : {"ce", "sm", "tma", "nccl", "proxy", "ibgda", "multimem"}) {
      for (const char* const rest : {"signal event fence put", "signal flag fence dest",
                                     "signal counter", "signal batched"}) {
        expect_prints(kFormHead + "  nest n {\n    stage A over gpu " + how + " by src via " + via +
                      " " + rest + "\n    leaf\n  }\n}\n");
      }
    }
  }
}

TEST(TextItems, loops_keep_skew_offset_and_direction) {
  const auto form =
      std::get<NormalForm>(expect_prints(
          kFormHead + "  nest n {\n    par a on (node, gpu)\n    for b\n    for c skew gpu\n"
                      "    for d skew (gpu, b) + 3 rev\n    for e rev\n    for f skew gpu + -1\n"
                      "    leaf\n  }\n}\n"));
  EXPECT_EQ(std::get<For>(form.nests.at(0).items.at(3)),
            (For{.digit = "d", .skew = {"gpu", "b"}, .offset = 3, .reverse = true}));
}

TEST(TextItems, refinements_come_first_and_homes_may_be_partial) {
  const auto form = std::get<NormalForm>(
      expect_prints(kFormHead +
                    "  refine gpu = ring:4 * uly:2\n  split M = m0:4 * mh:2 * m1:_\n"
                    "  layout M zigzag(m0, mh)\n  layout N table(1, 0)\n"
                    "  place A[m0@ring] partial sum@uly partial max@(node, tp)\n  place B[]\n}\n"));
  const Mesh mesh{.name = "m", .axes = {{"node", 2}, {"gpu", 8}, {"tp", 3}}};
  EXPECT_EQ(refined(mesh, form).axes,
            (std::vector<MeshAxis>{{"node", 2}, {"ring", 4}, {"uly", 2}, {"tp", 3}}));
  EXPECT_EQ(refined(mesh, NormalForm{}), mesh);
  EXPECT_EQ(find_place(form, "A")->partial.at(1).monoid, Monoid::Max);
  EXPECT_EQ(find_split(form, "M")->digits.at(2), (Digit{"m1", std::nullopt}));
  EXPECT_EQ(find_split(form, "N"), nullptr);
  EXPECT_EQ(find_nest(form, "n"), nullptr);
}

TEST(TextItems, one_mesh_axis_needs_no_parentheses) {
  expect_prints(kFormHead + "  place A[m0@(gpu)]\n}\n", kFormHead + "  place A[m0@gpu]\n}\n");
}

TEST(TextItems, topology_figures_keep_their_kind_and_words_lose_quotes) {
  const auto topology = std::get<Topology>(expect_prints(
      "topo t {\n  gpu h200 a=1 b=1.0 c=off d=\"off\" e=\"two words\"\n  level x\n}\n",
      "topo t {\n  gpu h200 a=1 b=1.0 c=off d=off e=\"two words\"\n  level x\n}\n"));
  EXPECT_EQ(topology.lines.at(0).figures.at(1).second, TopologyValue(1.0));
  EXPECT_EQ(topology.lines.at(1), (TopologyLine{"level", "x", {}}));
}

TEST(TextItems, the_pieces_parse_by_themselves) {
  Cursor cursor = Cursor::open("7 x \"s\" skew(d, 2) (node, gpu) gpu").value();
  EXPECT_EQ(parse_scalar(cursor).value(), Scalar(std::int64_t{7}));
  EXPECT_EQ(parse_scalar(cursor).value(), Scalar(Name{"x"}));
  EXPECT_EQ(parse_scalar(cursor).value(), Scalar(std::string("s")));
  EXPECT_EQ(parse_call(cursor).value(), (Call{"skew", {Name{"d"}, std::int64_t{2}}}));
  EXPECT_EQ(parse_mesh_ref(cursor).value(), (MeshRef{"node", "gpu"}));
  EXPECT_EQ(parse_mesh_ref(cursor).value(), (MeshRef{"gpu"}));
  EXPECT_TRUE(cursor.at_end());
}

TEST(TextItems, an_item_ends_where_it_ends) {
  Cursor cursor = Cursor::open("mesh a = x:2\nmesh b = y:3\ntopo t { }").value();
  EXPECT_EQ(parse_mesh(cursor).value().name, "a");
  EXPECT_EQ(parse_mesh(cursor).value().name, "b");
  EXPECT_EQ(parse_topology(cursor).value().name, "t");
  EXPECT_TRUE(cursor.at_end());
}

}  // namespace
}  // namespace harpe::ir_test
