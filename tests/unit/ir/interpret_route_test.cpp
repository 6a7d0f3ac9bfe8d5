#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "ir/instantiate.h"
#include "ir/interpret.h"
#include "ir/routing.h"
#include "ir/text.h"

namespace harpe {
namespace interpret_route_test {

Program parse(const std::string& text) {
  Checked<Cursor> cursor = Cursor::open(text);
  EXPECT_TRUE(cursor.ok());
  Checked<Program> program = parse_program(*cursor);
  EXPECT_TRUE(program.ok()) << render(program.error());
  return std::move(program).value();
}

HostTensor numbers(DType dtype, std::vector<std::int64_t> shape,
                   const std::vector<double>& values) {
  HostTensor tensor = make_tensor(dtype, std::move(shape));
  for (std::size_t i = 0; i < values.size(); ++i) {
    store(tensor, static_cast<std::int64_t>(i), values[i]);
  }
  return tensor;
}

std::vector<double> values_of(const HostTensor& tensor) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < element_count(tensor); ++i) values.push_back(load(tensor, i));
  return values;
}

// Tokens with one feature; every expert multiplies it by a different number.
const std::string kLayer =
    "program p { axis T = 3 axis Kc = 2 axis E = 3 axis C = dyn 3 of E axis H = 1 axis F = 1"
    " buffer x : f64[T, H] in buffer router : f64[T, E] in buffer w : f64[E, H, F] in"
    " buffer y : f64[T, F] out buffer i : i32[T, Kc] temp buffer s : f64[T, Kc] temp"
    " route R : (E, C) <- (T, Kc) by i"
    " buffer rows : f64[E, C, H] temp buffer made : f64[E, C, F] temp"
    " nest choose over (T) whole (E, Kc) { (i, s) = topk(router) }"
    " nest dispatch over (E, C) whole (H, Kc) { rows = gather_rows(x[T=R.T], i[T=R.T]) }"
    " nest work over (E, C, F, H) { made sum= matmul(rows, w) }"
    " nest combine over (T, Kc) whole (F) { y sum= combine_rows(made[E=R.E, C=R.C], i, s) } }";

TEST(InterpretRoute, runs_a_layer_of_experts) {
  const Checked<Program> program = instantiate(parse(kLayer), {});
  ASSERT_TRUE(program.ok()) << render(program.error());
  const TensorMap inputs = {
      {"x", numbers(DType::F64, {3, 1}, {1, 10, 100})},
      // Experts 2 and 0; 1 and 2; a tie of all three, which goes to 0 and 1.
      {"router", numbers(DType::F64, {3, 3}, {0, -9, 0.5, -9, 2, 1, 7, 7, 7})},
      {"w", numbers(DType::F64, {3, 1, 1}, {2, 3, 5})},
  };
  const Checked<Meaning> meaning = interpret(*program, inputs, std::nullopt, 2);
  ASSERT_TRUE(meaning.ok()) << render(meaning.error());
  const auto weight = [](double own, double other) {
    return std::exp(own) / (std::exp(own) + std::exp(other));
  };
  const std::vector<double> wanted = {
      1 * (weight(0.5, 0) * 5 + weight(0, 0.5) * 2),
      10 * (weight(2, 1) * 3 + weight(1, 2) * 5),
      100 * (0.5 * 2 + 0.5 * 3),
  };
  const std::vector<double> got = values_of(meaning->outputs.at("y"));
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-12) << i;
}

TEST(InterpretRoute, resolves_slots_in_the_order_of_tokens) {
  const Checked<Program> program = instantiate(parse(kLayer), {});
  ASSERT_TRUE(program.ok());
  const Route& route = *find_route(*program, "R");
  const Checked<Routing> routing =
      resolve_route(*program, route, numbers(DType::I32, {3, 2}, {2, 0, -1, 2, 0, 2}));
  ASSERT_TRUE(routing.ok()) << render(routing.error());
  EXPECT_EQ(routing->takers[0], (std::vector<std::int64_t>{1, 4}));
  EXPECT_TRUE(routing->takers[1].empty());
  EXPECT_EQ(routing->takers[2], (std::vector<std::int64_t>{0, 3, 5}));
  EXPECT_EQ(routing->slot, (std::vector<std::int64_t>{0, 0, -1, 1, 1, 2}));
}

TEST(InterpretRoute, refuses_experts_and_slots_that_do_not_exist) {
  const Checked<Program> program = instantiate(parse(kLayer), {});
  ASSERT_TRUE(program.ok());
  const Route& route = *find_route(*program, "R");
  const Checked<Routing> unknown =
      resolve_route(*program, route, numbers(DType::I32, {3, 2}, {2, 0, 3, 2, 0, 2}));
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(render(unknown.error()), "error[P206]: `i`: choice 0 of token 1 is expert 3, of 3");
  const Checked<Routing> full =
      resolve_route(*program, route, numbers(DType::I32, {3, 2}, {0, 0, 0, 0, 1, 2}));
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(render(full.error()),
            "error[P207]: route `R`: expert 0 has more than 3 choices in `i`; give the axis more "
            "slots");
}

class Pointwise : public testing::TestWithParam<std::pair<const char*, double>> {};

// At a = -1.5, b = 0.75.
TEST_P(Pointwise, leaf_has_its_textbook_value) {
  const auto& [call, wanted] = GetParam();
  const Checked<Program> program = instantiate(
      parse("program p { axis N = 1 axis B = 2 buffer a : f64[B, N] in buffer b : f64[N] in"
            " buffer y : f64[B, N] out nest f over (B, N) { y = " +
            std::string(call) + " } }"),
      {});
  ASSERT_TRUE(program.ok()) << render(program.error());
  const TensorMap inputs = {{"a", numbers(DType::F64, {2, 1}, {-1.5, -1.5})},
                            {"b", numbers(DType::F64, {1}, {0.75})}};
  const Checked<Meaning> meaning = interpret(*program, inputs, std::nullopt, 1);
  ASSERT_TRUE(meaning.ok()) << render(meaning.error());
  for (const double got : values_of(meaning->outputs.at("y"))) EXPECT_NEAR(got, wanted, 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Leaves, Pointwise,
                         testing::Values(std::pair("silu(a)", -0.2736382857095345),
                                         std::pair("relu(a)", 0.0),
                                         std::pair("gelu(a)", -0.10021080190328713),
                                         std::pair("add(a, b)", -0.75),
                                         std::pair("mul(a, b)", -1.125),
                                         std::pair("silu_mul(a, b)", -0.2052287142821509),
                                         std::pair("rms_scale(a, b; length=3, eps=0.0)", -3.0)),
                         [](const auto& leaf) {
                           const std::string call = leaf.param.first;
                           return call.substr(0, call.find('('));
                         });

}  // namespace interpret_route_test
}  // namespace harpe
