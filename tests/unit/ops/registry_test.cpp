#include "ops/registry.h"

#include <gtest/gtest.h>

#include "ir/instantiate.h"
#include "ir/text.h"

namespace harpe {
namespace {

Checked<Program> make(std::string_view op, const Bindings& values) {
  const Operator* found = find_operator(op);
  HP_CHECK(found != nullptr, std::string(op));
  return instantiate(template_of(*found), values);
}

std::vector<std::int64_t> shape(const Program& program, std::string_view buffer) {
  return shape_of(program, *find_buffer(program, buffer));
}

TEST(Operators, parse_print_and_instantiate_with_their_defaults) {
  ASSERT_FALSE(all_operators().empty());
  for (const Operator& op : all_operators()) {
    const Program program = template_of(op);
    const Checked<Program> again = parse_operator(print(program), "again.op");
    ASSERT_TRUE(again.ok()) << render(again.error());
    EXPECT_EQ(*again, program) << op.name;
    const Checked<Program> ground = instantiate(program, {});
    ASSERT_TRUE(ground.ok()) << op.name << ": " << render(ground.error());
    EXPECT_TRUE(is_ground(*ground)) << op.name;
    EXPECT_FALSE(op.summary.empty());
  }
}

TEST(Operators, are_canonical_text_below_their_summary) {
  for (const Operator& op : all_operators()) {
    const std::string_view body = op.text.substr(op.text.find('\n') + 1);
    EXPECT_EQ(print(template_of(op)), body) << op.name;
  }
}

TEST(Attention, has_the_layouts_of_the_command_line_contract) {
  const Checked<Program> program = make("attention", {{"batch", 2},
                                                      {"seq", 100},
                                                      {"kv_seq", 300},
                                                      {"heads", 12},
                                                      {"kv_heads", 4},
                                                      {"head_dim", 192},
                                                      {"v_head_dim", 128}});
  ASSERT_TRUE(program.ok()) << render(program.error());
  EXPECT_EQ(shape(*program, "q"), (std::vector<std::int64_t>{2, 100, 12, 192}));
  EXPECT_EQ(shape(*program, "k"), (std::vector<std::int64_t>{2, 300, 4, 192}));
  EXPECT_EQ(shape(*program, "v"), (std::vector<std::int64_t>{2, 300, 4, 128}));
  EXPECT_EQ(shape(*program, "o"), (std::vector<std::int64_t>{2, 100, 12, 128}));
  EXPECT_EQ(shape(*program, "lse"), (std::vector<std::int64_t>{2, 12, 100}));
  EXPECT_EQ(find_buffer(*program, "lse")->dtype, DType::F32);
}

TEST(Attention, has_key_lengths_heads_and_value_width_follow_the_query_s) {
  const Checked<Program> program = make("attention", {{"seq", 96}, {"heads", 6}, {"head_dim", 40}});
  ASSERT_TRUE(program.ok()) << render(program.error());
  EXPECT_EQ(shape(*program, "k"), (std::vector<std::int64_t>{1, 96, 6, 40}));
  EXPECT_EQ(shape(*program, "v"), shape(*program, "k"));
}

TEST(Attention, is_masked_only_when_causal) {
  const auto masks = [](std::string_view value) {
    const Checked<Program> program = make("attention", {{"causal", Name{std::string(value)}}});
    return program->nests[0].stmts[0].masks.size();
  };
  EXPECT_EQ(masks("true"), 1U);
  EXPECT_EQ(masks("false"), 0U);
}

TEST(Attention, refuses_query_heads_that_key_heads_do_not_divide) {
  const Checked<Program> program = make("attention", {{"heads", 12}, {"kv_heads", 5}});
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().code, DiagCode::P104);
  EXPECT_NE(render(program.error()).find("12 / 5 leaves remainder 2"), std::string::npos);
}

TEST(GemmFamily, is_one_product_under_four_names) {
  for (const std::string_view name : {"gemm", "ag_gemm", "gemm_rs", "gemm_ar"}) {
    const Checked<Program> program =
        make(name, {{"m", 3}, {"n", 5}, {"k", 7}, {"dtype", Name{"f64"}}});
    ASSERT_TRUE(program.ok()) << render(program.error());
    EXPECT_EQ(program->name, name);
    EXPECT_EQ(shape(*program, "a"), (std::vector<std::int64_t>{3, 7}));
    EXPECT_EQ(shape(*program, "b"), (std::vector<std::int64_t>{7, 5}));
    EXPECT_EQ(shape(*program, "c"), (std::vector<std::int64_t>{3, 5}));
    EXPECT_EQ(find_buffer(*program, "c")->dtype, DType::F64);
  }
}

TEST(OperatorFile, holds_one_program_and_nothing_more) {
  const Checked<Program> program = parse_operator(
      "program p { axis A = 4 buffer x : f32[A] in buffer y : f32[A] out\n"
      "nest n over (A) { y = copy(x) } }\nprogram q {}",
      "two.op");
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(render(program.error()),
            "error[T001]: two.op:3:1: expected the end of the file after one program, found "
            "`program`");
}

}  // namespace
}  // namespace harpe
