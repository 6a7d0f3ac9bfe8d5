// Shipped operators rewritten in C++: the builder can express any `.op` file.
#include "ir/builder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "ir/text.h"
#include "tests/unit/ir/text_support.h"

namespace harpe {
namespace builder_test {

std::string operator_text(const std::string& name) {
  std::ifstream file(std::string(HARPE_SOURCE_DIR) + "/src/ops/" + name + ".op");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void expect_like(const Checked<Program>& built, const std::string& name) {
  ASSERT_TRUE(built.ok()) << render(built.error());
  EXPECT_EQ(print(*built), print(ir_test::program_of(operator_text(name))));
}

TEST(ProgramBuilder, writes_a_product) {
  ProgramBuilder p("gemm");
  const Size m = p.integer("m", 1024);
  const Size n = p.integer("n", 1024);
  const Size k = p.integer("k", 1024);
  const Type type = p.type("dtype", DType::BF16);
  const Index M = p.axis("M", m, 128);
  const Index N = p.axis("N", n, 128);
  const Index K = p.axis("K", k, 64);
  const Array a = p.input("a", type, {M, K});
  const Array b = p.input("b", type, {K, N});
  const Array c = p.output("c", type, {M, N});
  p.leaf_cost("matmul", Size(2) * M * N * K);
  p.nest("mm").over({M, N, K}).sum({c}, "matmul", {a, b});
  expect_like(p.take(), "gemm");
}

TEST(ProgramBuilder, writes_conditions_masks_and_products_of_axes) {
  ProgramBuilder p("attention");
  const Size batch = p.integer("batch", 1);
  const Size seq = p.integer("seq", 2048);
  const Size kv_seq = p.integer("kv_seq", seq);
  const Size heads = p.integer("heads", 8);
  const Size kv_heads = p.integer("kv_heads", heads);
  const Size head_dim = p.integer("head_dim", 64);
  const Size v_head_dim = p.integer("v_head_dim", head_dim);
  const std::string causal = p.option("causal", false);
  p.integer("window", 0);
  p.integer("prefix", 0);
  const std::string packed = p.option("packed", false);
  const Type type = p.type("dtype", DType::BF16);
  const Index B = p.axis("B", batch);
  const Index Sq = p.axis("Sq", seq, 128);
  const Index Skv = p.axis("Skv", kv_seq, 128);
  const Index Hkv = p.axis("Hkv", kv_heads);
  const Index G = p.axis("G", heads / kv_heads);
  const Index D = p.axis("D", head_dim);
  const Index Dv = p.axis("Dv", v_head_dim);
  const Index S = p.axis("S", seq);
  const Array q = p.input("q", type, {B, Sq, {Hkv, G}, D});
  const Array k = p.input("k", type, {B, Skv, Hkv, D});
  const Array v = p.input("v", type, {B, Skv, Hkv, Dv});
  p.input("seg", DType::I32, {B, S}, packed);
  const Array o = p.output("o", type, {B, Sq, {Hkv, G}, Dv});
  const Array lse = p.output("lse", DType::F32, {B, {Hkv, G}, Sq});
  p.leaf_cost("attn_fwd",
              Size(2) * B * Hkv * G * Sq * Skv * D + Size(2) * B * Hkv * G * Sq * Skv * Dv);
  const Scalar queries = Name{"Sq"};
  const Scalar keys = Name{"Skv"};
  p.nest("fwd")
      .over({B, Hkv, G, Sq, Skv})
      .whole({D, Dv, S})
      .lse({o, lse}, "attn_fwd", {q, k, v})
      .mask("causal", {queries, keys}, causal)
      .mask("window", {queries, keys, Name{"window"}}, "window")
      .mask("prefix", {queries, keys, Name{"prefix"}}, "prefix")
      .mask("doc", {queries, keys, Name{"seg"}}, packed);
  expect_like(p.take(), "attention");
}

TEST(ProgramBuilder, writes_routes_and_ragged_axes) {
  ProgramBuilder p("moe");
  const Size tokens = p.integer("tokens", 1024);
  const Size hidden = p.integer("hidden", 256);
  const Size experts = p.integer("experts", 16);
  const Size topk = p.integer("topk", 2);
  const Size inter = p.integer("inter", 512);
  p.number("skew", 0);
  const Type type = p.type("dtype", DType::BF16);
  const Index T = p.axis("T", tokens, 64);
  const Index Kc = p.axis("Kc", topk);
  const Index E = p.axis("E", experts);
  const Index C = p.ragged_axis("C", tokens, E, 64);
  const Index H = p.axis("H", hidden);
  const Index F = p.axis("F", inter);
  const Array x = p.input("x", type, {T, H});
  const Array router = p.input("router", DType::F32, {T, E});
  const Array w1 = p.input("w1", type, {E, H, F});
  const Array w3 = p.input("w3", type, {E, H, F});
  const Array w2 = p.input("w2", type, {E, F, H});
  const Array y = p.output("y", type, {T, H});
  const Array index = p.temporary("index", DType::I32, {T, Kc});
  const Array weight = p.temporary("weight", DType::F32, {T, Kc});
  const Route R = p.route("R", {E, C}, {T, Kc}, index, "exact",
                          Call{.function = "zipf", .args = {Name{"skew"}}});
  const Array rows = p.temporary("rows", type, {E, C, H});
  const Array gate = p.temporary("gate", type, {E, C, F});
  const Array up = p.temporary("up", type, {E, C, F});
  const Array act = p.temporary("act", type, {E, C, F});
  const Array made = p.temporary("made", type, {E, C, H});
  p.leaf_cost("topk", Size(T) * E);
  p.leaf_cost("gather_rows", Size(T) * Kc);
  p.leaf_cost("matmul", Size(2) * T * Kc * H * F);
  p.leaf_cost("silu_mul", Size(4) * T * Kc * F);
  p.leaf_cost("combine_rows", Size(2) * T * Kc * H);
  p.nest("choose").over({T}).whole({E, Kc}).store({index, weight}, "topk", {router});
  p.nest("dispatch")
      .over({E, C})
      .whole({H, Kc})
      .store({rows}, "gather_rows", {x.at(T, R), index.at(T, R)});
  p.nest("expand")
      .over({E, C, F, H})
      .sum({gate}, "matmul", {rows, w1})
      .sum({up}, "matmul", {rows, w3});
  p.nest("activate").over({E, C, F}).store({act}, "silu_mul", {gate, up});
  p.nest("reduce").over({E, C, H, F}).sum({made}, "matmul", {act, w2});
  p.nest("combine").over({T, Kc}).whole({H}).sum({y}, "combine_rows",
                                                 {made.at(E, R).at(C, R), index, weight});
  expect_like(p.take(), "moe");
}

TEST(ProgramBuilder, writes_what_shipped_operators_do_not_need) {
  ProgramBuilder p("other");
  const Index T = p.dynamic_axis("T", 64, 8);
  const Index S = p.axis("S", 64, 8);
  const Index K = p.axis("K", 4);
  const Array x = p.input("x", DType::F32, {T, 3});
  const Array y = p.output("y", DType::F32, {T, 3});
  const Array m = p.output("m", DType::F32, {T});
  p.leaf({.name = "peak", .flops = (Size(3) * T + K).poly, .bytes = Size(T).poly, .kernel = "p"});
  p.nest("n").over({T, K}).seq({K}).max({m}, "peak", {x}, {{"slope", 0.5}});
  p.nest("o").over({T}).whole({S}).store({y}, "peak", {x.at(T, S)});
  const Checked<Program> program = p.take();
  ASSERT_TRUE(program.ok()) << render(program.error());
  EXPECT_EQ(print(*program), R"(program other {
  axis T = dyn 64 grain 8
  axis S = 64 grain 8
  axis K = 4
  buffer x : f32[T, 3] in
  buffer y : f32[T, 3] out
  buffer m : f32[T] out
  leaf peak flops 3*T + K bytes T kernel "p"
  nest n over (T, K) seq (K) {
    m max= peak(x; slope=0.5)
  }
  nest o over (T) whole (S) {
    y = peak(x[T=S])
  }
}
)");
}

TEST(ProgramBuilder, refuses_what_a_parser_would_refuse) {
  ProgramBuilder p("twice");
  p.axis("M", 4);
  p.axis("M", 5);
  const Checked<Program> program = p.take();
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(render(program.error()), "error[P001]: axis `M` is declared twice; rename one of them");
}

}  // namespace builder_test
}  // namespace harpe
