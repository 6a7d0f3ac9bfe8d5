#include "ir/program.h"

#include <gtest/gtest.h>

#include "ir/instantiate.h"
#include "tests/unit/ir/text_support.h"

namespace harpe::ir_test {
namespace {

// A gemm with declarations or nests given by a test.
std::string gemm_with(const std::string& nests, const std::string& decls = "") {
  return "program gemm {\n  axis M = 6\n  axis N = 4\n  axis K = 5\n  buffer a : bf16[M, K] in\n"
         "  buffer b : bf16[K, N] in\n  buffer c : bf16[M, N] out\n" +
         decls + nests + "}\n";
}
const std::string kMatmul = "  nest mm over (M, N, K) {\n    c sum= matmul(a, b)\n  }\n";

std::string check(const std::string& text) {
  const Checked<Ok> checked = check_program(program_of(text));
  return checked.ok() ? "accepted" : render(checked.error());
}

TEST(Program, finds_declarations_by_kind_and_name) {
  const Program program = program_of(gemm_with(kMatmul, "  leaf matmul flops 2*M*N*K\n"));
  EXPECT_EQ(size_of(*find_axis(program, "K")), 5);
  EXPECT_EQ(find_buffer(program, "c")->role, Role::Out);
  EXPECT_EQ(find_axis(program, "a"), nullptr);
  EXPECT_EQ(find_buffer(program, "M"), nullptr);
  EXPECT_NE(find_leaf(program, "matmul"), nullptr);
  EXPECT_EQ(find_route(program, "R"), nullptr);
  EXPECT_EQ(find_nest(program, "mm")->over.size(), 3U);
  EXPECT_EQ(axes_of(program).size(), 3U);
  EXPECT_EQ(buffers_of(program).at(1)->name, "b");
}

TEST(Program, a_shape_multiplies_product_dimensions) {
  const Program program = program_of(
      "program p {\n  axis A = 2\n  axis B = 3\n  axis C = 5\n"
      "  buffer x : f32[C, (A, B), 7] in\n}\n");
  const Buffer& x = *find_buffer(program, "x");
  EXPECT_EQ(shape_of(program, x), (std::vector<std::int64_t>{5, 6, 7}));
  EXPECT_EQ(axis_names(x), (std::vector<std::string>{"C", "A", "B"}));
}

TEST(Program, is_ground_without_parameters_expressions_and_conditions) {
  EXPECT_TRUE(is_ground(program_of(gemm_with(kMatmul))));
  EXPECT_FALSE(is_ground(program_of("program p {\n  param m = 1\n}\n")));
  EXPECT_FALSE(is_ground(program_of("program p {\n  axis M = 2*3\n}\n")));
}

TEST(Program, words_of_monoids_and_roles_read_back) {
  for (const Monoid monoid : {Monoid::Sum, Monoid::Max, Monoid::Lse}) {
    EXPECT_EQ(parse_monoid(print(monoid)), monoid);
  }
  EXPECT_EQ(print(Monoid::Store), "");
  EXPECT_EQ(parse_monoid(""), std::nullopt);
  for (const Role role : {Role::In, Role::Out, Role::Temp}) {
    EXPECT_EQ(parse_role(print(role)), role);
  }
  EXPECT_EQ(parse_role("output"), std::nullopt);
}

TEST(CheckProgram, accepts_the_examples_but_for_undeclared_leaves) {
  int accepted = 0;
  for (const std::string& text : example_items()) {
    if (!text.starts_with("program ") || text.starts_with("program moe ")) continue;
    EXPECT_EQ(check(text), "accepted") << text;
    ++accepted;
  }
  EXPECT_EQ(accepted, 5);
}

TEST(CheckProgram, a_leaf_without_a_contract_must_be_declared) {
  EXPECT_EQ(check(gemm_with("  nest mm over (M, N, K) {\n    c sum= matmull(a, b)\n  }\n")),
            "error[P002]: nest `mm`: no leaf is called `matmull` (did you mean `matmul`?)");
  EXPECT_EQ(check(gemm_with("  nest mm over (M, N, K) {\n    c sum= matmull(a, b)\n  }\n",
                            "  leaf matmull\n")),
            "accepted");
}

TEST(CheckProgram, a_built_in_leaf_keeps_its_arity_and_monoid) {
  EXPECT_EQ(check(gemm_with("  nest mm over (M, N, K) {\n    c sum= matmul(a)\n  }\n")),
            "error[P017]: nest `mm`: leaf `matmul` makes 1 of 2 buffers, found 1 of 1");
  EXPECT_EQ(check(gemm_with("  nest mm over (M, N, K) {\n    c max= matmul(a, b)\n  }\n")),
            "error[P018]: nest `mm`: leaf `matmul` combines by `sum=`, found `max=`");
  EXPECT_EQ(check(gemm_with(
                "  nest mm over (M, N, K) {\n    c sum= matmul(a, b) where causal(M, N)\n  }\n")),
            "error[P019]: nest `mm`: leaf `matmul` takes no mask, found 1");
}

TEST(CheckProgram, refuses_a_template) {
  EXPECT_EQ(check("program p {\n  param m = 1\n  param n = 1\n  axis M = m\n}\n"),
            "error[P011]: program `p` is a template: it has parameter `m`, `n`; instantiate it "
            "first");
  EXPECT_EQ(check("program p {\n  axis M = 2*3\n}\n"),
            "error[P011]: program `p` is a template: it has size `2*3`; instantiate it first");
}

TEST(CheckProgram, every_result_is_written_and_before_it_is_read) {
  EXPECT_EQ(check(gemm_with("")), "error[P015]: no statement writes `c`, whose role is `out`");
  EXPECT_EQ(check(gemm_with("  nest x over (M, N) {\n    c = copy(t)\n  }\n"
                            "  nest y over (M, N) whole (K) {\n    t sum= matmul(a, b)\n  }\n",
                            "  buffer t : f32[M, N] temp\n")),
            "error[P016]: nest `x` reads `t` before any statement writes it");
}

TEST(CheckProgram, a_sum_begins_anew) {
  const std::string first = "  nest x over (M, N) whole (K) {\n    c sum= matmul(a, b)\n  }\n";
  EXPECT_EQ(check(gemm_with(first + "  nest y over (M, N) {\n    c = relu(c)\n  }\n")), "accepted");
  const std::string remedy =
      "; write to a temporary, and combine both in a nest of its own, as by `y = add(x, t)`";
  EXPECT_EQ(check(gemm_with(first + "  nest y over (M, N) whole (K) {\n    c sum= matmul(a, b)\n"
                                    "  }\n")),
            "error[P026]: nest `y` writes `c`, which nest `x` has written already" + remedy);
  EXPECT_EQ(check(gemm_with("  nest x over (M, N) whole (K) {\n    c = relu(d)\n"
                            "    c sum= matmul(a, b)\n  }\n",
                            "  buffer d : f32[M, N] in\n")),
            "error[P026]: nest `x` writes `c`, which nest `x` has written already" + remedy);
  EXPECT_EQ(check(gemm_with("  nest x over (M, N, K) {\n    (c, c) lse= pair(a, b)\n  }\n",
                            "  leaf pair\n")),
            "error[P026]: nest `x` writes `c`, which this statement has written already" + remedy);
}

constexpr const char* kDoubled =
    "program p {\n  axis M = 8\n  buffer a : f32[M] in\n  buffer b : f32[M] in\n"
    "  buffer c : f32[M] out\n  given nest x over (M) {\n    b = copy(a)\n  }\n"
    "  nest y over (M) {\n    c = copy(b)\n  }\n}\n";

TEST(Program, says_how_inputs_follow_from_others) {
  const Program program = program_of(kDoubled);
  EXPECT_EQ(print(program), kDoubled);
  ASSERT_EQ(program.given.size(), 1U);
  EXPECT_EQ(program.nests.size(), 1U);
  const Program preparation = preparation_of(program);
  EXPECT_EQ(find_buffer(preparation, "a")->role, Role::In);
  EXPECT_EQ(find_buffer(preparation, "b")->role, Role::Out);
  EXPECT_EQ(find_buffer(preparation, "c"), nullptr);
  EXPECT_EQ(preparation.nests.at(0).name, "x");
  EXPECT_TRUE(preparation_of(preparation).nests.empty());
}

TEST(CheckProgram, holds_given_nests_to_inputs_and_to_the_rules_of_all_nests) {
  EXPECT_EQ(check(kDoubled), "accepted");
  Program program = program_of(kDoubled);
  program.given[0].stmts[0].targets[0].buffer = "c";
  EXPECT_EQ(render(check_program(program).error()),
            "error[P025]: given nest `x` names `c`, whose role is `out`");
  program = program_of(kDoubled);
  program.given[0].stmts[0].leaf = "copi";
  EXPECT_EQ(render(check_program(program).error()),
            "error[P002]: nest `x`: no leaf is called `copi` (did you mean `copy`?)");
  program = program_of(kDoubled);
  program.given[0].stmts.clear();
  EXPECT_EQ(render(check_program(program).error()),
            "error[P021]: nest `x` has no statement; remove it");
}

TEST(CheckProgram, refuses_an_empty_nest) {
  EXPECT_EQ(check(gemm_with(kMatmul + "  nest x over (M) {\n  }\n")),
            "error[P021]: nest `x` has no statement; remove it");
}

TEST(CheckProgram, refuses_a_buffer_beyond_addresses) {
  EXPECT_EQ(check("program p {\n  axis M = 1099511627776\n  axis N = 1099511627776\n"
                  "  buffer x : f32[M, N] in\n}\n"),
            "error[P022]: buffer `x` has more than 1125899906842624 elements");
  EXPECT_EQ(check("program p {\n  axis M = 1099511627776\n  buffer x : f32[M, 1024] in\n}\n"),
            "accepted");
}

TEST(CheckProgram, checks_a_program_that_was_never_text) {
  Program program = program_of(gemm_with(kMatmul));
  program.nests.at(0).stmts.at(0).operands.at(1).buffer = "bb";
  const Checked<Ok> checked = check_program(program);
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(render(checked.error()),
            "error[P002]: nest `mm`: no buffer is called `bb` (did you mean `b`?)");
}

}  // namespace
}  // namespace harpe::ir_test
