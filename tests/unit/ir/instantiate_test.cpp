#include "ir/instantiate.h"

#include <gtest/gtest.h>

#include <limits>

#include "ir/program_check.h"
#include "tests/unit/ir/text_support.h"

namespace harpe::ir_test {
namespace instantiate_test {

const Program& attention() {
  static const Program program = program_of(
      "program attention {\n"
      "  param seq = 2048\n"
      "  param kv_seq = seq\n"
      "  param heads = 8\n"
      "  param kv_heads = heads\n"
      "  param causal : bool = false\n"
      "  param scale : float = 1\n"
      "  param mode : dtype = f16\n"
      "  param dtype : dtype = mode\n"
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
      "  leaf attn_fwd flops 4*heads*Sq*Skv*D\n"
      "  nest fwd over (Hkv, G, Sq, Skv) whole (D) {\n"
      "    (o, lse) lse= attn_fwd(q, k, v; scale=scale, how=fast) where causal(Sq, Skv) if causal\n"
      "  }\n"
      "}\n");
  return program;
}

Scalar integer(std::int64_t value) { return value; }

std::string refusal(const Program& program, const Bindings& bindings) {
  const Checked<Program> ground = instantiate(program, bindings);
  return ground.ok() ? print(*ground) : render(ground.error());
}

// A program of one axis whose size is `size` over parameters a and b.
std::string size_of_axis(const std::string& size, std::int64_t a, std::int64_t b) {
  const Program program =
      program_of("program p {\n  param a = 1\n  param b = 1\n  axis M = " + size + "\n}\n");
  const Checked<Program> ground = instantiate(program, {{"a", integer(a)}, {"b", integer(b)}});
  return ground.ok() ? std::to_string(size_of(*find_axis(*ground, "M"))) : render(ground.error());
}

TEST(Instantiate, puts_values_in_place_of_parameters_and_defaults_of_the_rest) {
  const Bindings bindings = {{"seq", integer(256)},
                             {"kv_heads", integer(2)},
                             {"causal", Name{"true"}},
                             {"scale", 0.25},
                             {"dtype", Name{"f64"}}};
  const Checked<Program> ground = instantiate(attention(), bindings);
  ASSERT_TRUE(ground.ok()) << render(ground.error());
  EXPECT_EQ(print(*ground),
            "program attention {\n"
            "  axis Sq = 256 grain 128\n"
            "  axis Skv = 256 grain 128\n"
            "  axis Hkv = 2\n"
            "  axis G = 4\n"
            "  axis D = 64\n"
            "  buffer q : f64[Sq, (Hkv, G), D] in\n"
            "  buffer k : f64[Skv, Hkv, D] in\n"
            "  buffer v : f64[Skv, Hkv, D] in\n"
            "  buffer o : f64[Sq, (Hkv, G), D] out\n"
            "  buffer lse : f32[(Hkv, G), Sq] out\n"
            "  leaf attn_fwd flops 4*8*Sq*Skv*D\n"
            "  nest fwd over (Hkv, G, Sq, Skv) whole (D) {\n"
            "    (o, lse) lse= attn_fwd(q, k, v; scale=0.25, how=fast) where causal(Sq, Skv)\n"
            "  }\n"
            "}\n");
  EXPECT_TRUE(is_ground(*ground));
  EXPECT_EQ(program_of(print(*ground)), *ground);
}

TEST(Instantiate, a_mask_that_is_switched_off_is_gone) {
  const Program ground = instantiate(attention(), {}).value();
  EXPECT_TRUE(ground.nests.at(0).stmts.at(0).masks.empty());
  EXPECT_TRUE(check_program(ground).ok());
}

TEST(Instantiate, a_default_follows_the_parameter_it_names) {
  const Program ground =
      instantiate(attention(), {{"seq", integer(512)}, {"mode", Name{"f32"}}}).value();
  EXPECT_EQ(size_of(*find_axis(ground, "Skv")), 512);
  EXPECT_EQ(find_buffer(ground, "q")->dtype, DType::F32);
  const Program both =
      instantiate(attention(), {{"seq", integer(512)}, {"kv_seq", integer(128)}}).value();
  EXPECT_EQ(size_of(*find_axis(both, "Skv")), 128);
}

TEST(Instantiate, an_integer_given_to_a_float_parameter_becomes_one) {
  const Program ground = instantiate(attention(), {{"scale", integer(2)}}).value();
  EXPECT_EQ(ground.nests.at(0).stmts.at(0).attrs.at(0).second, Scalar(2.0));
}

TEST(Instantiate, a_ground_program_stays_as_it_is) {
  const Program ground = instantiate(attention(), {}).value();
  EXPECT_EQ(instantiate(ground, {}).value(), ground);
}

TEST(Instantiate, an_axis_hides_a_parameter_of_its_name_in_costs) {
  const Program program =
      program_of("program p {\n  param M = 3\n  axis M = M*2\n  leaf f flops 2*M bytes 1.5*M\n}\n");
  EXPECT_EQ(print(instantiate(program, {}).value()),
            "program p {\n  axis M = 6\n  leaf f flops 2*M bytes 1.5*M\n}\n");
}

TEST(Instantiate, sizes_are_sums_of_products_from_left_to_right) {
  EXPECT_EQ(size_of_axis("a", 7, 1), "7");
  EXPECT_EQ(size_of_axis("a + 2*b", 7, 5), "17");
  EXPECT_EQ(size_of_axis("2*a + b", 7, 5), "19");
  EXPECT_EQ(size_of_axis("a*b/6 + 1", 9, 4), "7");
  EXPECT_EQ(size_of_axis("a/b*b", 12, 4), "12");
  EXPECT_EQ(size_of_axis("a + -1*b", 7, 5), "2");
  EXPECT_EQ(size_of_axis("a", kMaxAxisSize, 1), "1099511627776");
}

TEST(Instantiate, refuses_sizes_that_are_none) {
  EXPECT_EQ(size_of_axis("a", 0, 1), "error[P103]: axis `M`: size 0 is outside 1 .. 1099511627776");
  EXPECT_EQ(size_of_axis("a + b", 3, -5),
            "error[P103]: axis `M`: size -2 is outside 1 .. 1099511627776");
  EXPECT_EQ(size_of_axis("a + 1", kMaxAxisSize, 1),
            "error[P103]: axis `M`: size 1099511627777 is outside 1 .. 1099511627776");
  EXPECT_EQ(size_of_axis("a/b", 12, 0), "error[P105]: axis `M`: 12 / 0 has no value");
  EXPECT_EQ(size_of_axis("a/b", 12, 5),
            "error[P104]: axis `M` is `a/b`: 12 / 5 leaves remainder 2; choose values that divide");
}

TEST(Instantiate, refuses_arithmetic_beyond_64_bits) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(size_of_axis("a*b", kMax, 2),
            "error[P103]: axis `M`: size 9223372036854775807 * 2 is outside 1 .. 1099511627776");
  EXPECT_EQ(size_of_axis("a + b", kMax, 1),
            "error[P103]: axis `M`: size 9223372036854775807 + 1 is outside 1 .. 1099511627776");
  EXPECT_EQ(size_of_axis("a/b", kMin, -1),
            "error[P103]: axis `M`: size -9223372036854775808 * -1 is outside 1 .. 1099511627776");
}

TEST(Instantiate, refuses_heads_that_key_heads_do_not_divide) {
  EXPECT_EQ(refusal(attention(), {{"heads", integer(12)}, {"kv_heads", integer(5)}}),
            "error[P104]: axis `G` is `heads/kv_heads`: 12 / 5 leaves remainder 2; choose values "
            "that divide");
}

TEST(Instantiate, refuses_a_parameter_the_program_does_not_have) {
  EXPECT_EQ(refusal(attention(), {{"kvseq", integer(8)}}),
            "error[P101]: program `attention` has no parameter `kvseq` (did you mean `kv_seq`?)");
  EXPECT_EQ(refusal(attention(), {{"completely_else", integer(8)}}),
            "error[P101]: program `attention` has no parameter `completely_else`");
}

TEST(Instantiate, refuses_values_of_the_wrong_kind) {
  EXPECT_EQ(refusal(attention(), {{"seq", 2.0}}),
            "error[P102]: parameter `seq` takes an integer, found `2.0`");
  EXPECT_EQ(refusal(attention(), {{"seq", Name{"kv_seq"}}}),
            "error[P102]: parameter `seq` takes an integer, found `kv_seq`");
  EXPECT_EQ(refusal(attention(), {{"causal", integer(1)}}),
            "error[P102]: parameter `causal` takes `true` or `false`, found `1`");
  EXPECT_EQ(refusal(attention(), {{"causal", Name{"flase"}}}),
            "error[P102]: parameter `causal` takes `true` or `false`, found `flase` (did you mean "
            "`false`?)");
  EXPECT_EQ(
      refusal(attention(), {{"dtype", Name{"bf61"}}}),
      "error[P102]: parameter `dtype` takes a dtype (bf16, f16, f32 or f64), found `bf61` (did you "
      "mean `bf16`?)");
  EXPECT_EQ(refusal(attention(), {{"scale", std::string("1")}}),
            "error[P102]: parameter `scale` takes a number, found `\"1\"`");
}

TEST(Instantiate, checks_the_program_it_makes) {
  const Program program = program_of(
      "program p {\n  param m = 2\n  axis M = m\n  buffer x : f32[M] in\n"
      "  buffer y : f32[M] out\n  nest n over (M) {\n    y = cpoy(x)\n  }\n}\n");
  EXPECT_EQ(refusal(program, {}),
            "error[P002]: nest `n`: no leaf is called `cpoy` (did you mean `copy`?)");
}

TEST(Instantiate, checks_a_template_that_was_never_text) {
  Program program = attention();
  std::get<Axis>(program.decls.at(0)).size.first = Name{"squence"};
  EXPECT_EQ(refusal(program, {}), "error[P002]: axis `Sq`: no parameter is called `squence`");
}

}  // namespace instantiate_test
}  // namespace harpe::ir_test
