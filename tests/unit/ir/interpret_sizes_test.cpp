// The sizes of terms that the reference reports (Meaning::scales).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/interpret.h"
#include "ir/text.h"
#include "support/check.h"

namespace harpe {
namespace {

HostTensor numbers(std::vector<std::int64_t> shape, const std::vector<double>& values) {
  HostTensor tensor = make_tensor(DType::F64, std::move(shape));
  for (std::size_t i = 0; i < values.size(); ++i) {
    store(tensor, static_cast<std::int64_t>(i), values[i]);
  }
  return tensor;
}

Meaning meaning_of(const std::string& text, const TensorMap& inputs,
                   const std::set<std::string>& rounded = {}, double error = 0x1p-8) {
  const std::string whole = "program p { " + text + " }";
  Checked<Cursor> cursor = Cursor::open(whole);
  HP_CHECK(cursor.ok(), render(cursor.error()));
  const Checked<Program> program = parse_program(*cursor);
  HP_CHECK(program.ok(), render(program.error()));
  Checked<Meaning> meaning =
      interpret(*program, inputs, std::nullopt, 2, {.error = error, .inputs = rounded});
  HP_CHECK(meaning.ok(), render(meaning.error()));
  return std::move(meaning).value();
}

TEST(InterpretSizes, of_a_product_are_roots_of_the_squares_of_its_terms) {
  const Meaning meaning = meaning_of(
      "axis M = 1 axis K = 2 axis N = 2 buffer a : f64[M, K] in buffer b : f64[K, N] in"
      " buffer c : f64[M, N] out nest n over (M, N, K) { c sum= matmul(a, b) }",
      {{"a", numbers({1, 2}, {1000, 1})}, {"b", numbers({2, 2}, {3, -5, 7, 11})}});
  // A mean over the columns, per term of the contraction: large terms may meet in one column.
  const double wanted = std::sqrt((9e6 + 49 + 25e6 + 121) / 2);
  EXPECT_NEAR(meaning.scales.at("c")[0], wanted, 1e-9);
  EXPECT_NEAR(meaning.scales.at("c")[1], wanted, 1e-9);
}

constexpr const char* kCancels =
    "axis M = 1 axis N = 2 axis R = 1 buffer a : f64[M, N] in buffer b : f64[M, N] in"
    " buffer d : f64[N, R] in buffer t : f64[M, N] temp ";
const TensorMap kCancelling = {{"a", numbers({1, 2}, {3, 4})},
                               {"b", numbers({1, 2}, {-3, -4})},
                               {"d", numbers({2, 1}, {2, 2})}};

TEST(InterpretSizes, outlive_cancellation_in_a_temporary) {
  const Meaning meaning =
      meaning_of(std::string(kCancels) +
                     "buffer u : f64[M, N] temp buffer c : f64[M, R] out"
                     " nest n over (M, N) { t = add(a, b) } nest k over (M, N) { u = copy(t) }"
                     " nest m over (M, R, N) { c sum= matmul(u, d) }",
                 kCancelling, {"a", "b"});
  EXPECT_EQ(load(meaning.outputs.at("c"), 0), 0);
  EXPECT_NEAR(meaning.scales.at("c")[0], std::sqrt(2 * (9 + 16) * 4.0), 1e-9);
}

TEST(InterpretSizes, take_inputs_for_exact_that_are_read_as_they_are) {
  const Meaning meaning =
      meaning_of(std::string(kCancels) +
                     "buffer c : f64[M, R] out nest n over (M, N) { t = add(a, b) }"
                     " nest m over (M, R, N) { c sum= matmul(t, d) }",
                 kCancelling);
  EXPECT_EQ(meaning.scales.at("c")[0], 0);
}

TEST(InterpretSizes, of_sums_of_squares_of_what_cancels_know_both_factors) {
  const Meaning meaning =
      meaning_of(std::string(kCancels) +
                     "buffer c : f64[M] out nest n over (M, N) { t = add(a, b) }"
                     " nest m over (M) whole (N) { c = rowdot(t, t) }",
                 kCancelling, {"a", "b"});
  // One factor errs by its full size, the other, which is 0, by a 256th of it.
  const double sizes = std::sqrt((18.0 * 18 + 32.0 * 32)) / 256;
  EXPECT_NEAR(meaning.scales.at("c")[0], sizes, 1e-9);
}

TEST(InterpretSizes, of_functions_are_their_slopes_times_the_operands) {
  const auto scale_of = [](const std::string& call, double a) {
    return meaning_of(
               "axis N = 1 buffer a : f64[N] in buffer b : f64[N] in buffer y : f64[N] out"
               " nest n over (N) { y = " +
                   call + " }",
               {{"a", numbers({1}, {a})}, {"b", numbers({1}, {4})}}, {"a", "b"})
        .scales.at("y")[0];
  };
  EXPECT_NEAR(scale_of("mul(a, b)", -3), 12 * std::sqrt(2.0), 1e-3);
  EXPECT_NEAR(scale_of("add(a, b)", -4), std::sqrt(32.0), 1e-9);
  EXPECT_NEAR(scale_of("relu(a)", -3), 0, 1e-12);
  EXPECT_NEAR(scale_of("silu(a)", -20), 20 * 19 * std::exp(-20.0), 1e-8);
  EXPECT_NEAR(scale_of("rms_scale(a, b; length=1, eps=0.0)", 3), 1.5 * std::sqrt(1.25), 1e-3);
}

TEST(InterpretSizes, of_normalised_sums_are_those_of_what_cancelled_in_them) {
  const std::string program =
      std::string(kCancels) +
      "buffer w : f64[N] in buffer s : f64[M, N] out buffer y : f64[M, N] out"
      " nest n over (M) whole (N) { (s, y) = add_rms_norm(a, b, w; eps=0.01) }";
  TensorMap inputs = kCancelling;
  inputs["w"] = numbers({2}, {1, 10});
  const Meaning exact = meaning_of(program, inputs);
  EXPECT_EQ(exact.scales.at("y")[0], 0);
  const Meaning meaning = meaning_of(program, inputs, {"a", "b"});
  EXPECT_EQ(load(meaning.outputs.at("y"), 1), 0);
  EXPECT_NEAR(meaning.scales.at("s")[1], std::sqrt(32.0), 1e-9);
  // The sums are 0, so the root is that of eps, 0.1, and its error is 0.
  EXPECT_NEAR(meaning.scales.at("y")[1], std::sqrt(32.0) * 10 / 0.1, 1e-9);
  EXPECT_NEAR(meaning.roots.at("s"), 0.1, 1e-12);
  inputs["b"] = numbers({1, 2}, {0, 0});
  const Meaning moved = meaning_of(program, inputs, {"a"});
  // The error of 3 itself, over 5 / sqrt(2), and that of the root, (3^2, 4^2) / 25, also times 3.
  const double root = std::sqrt(12.5 + 0.01);
  const double of_root = 3 / root * std::hypot(9, 16) / (2 * root * root);
  EXPECT_NEAR(load(moved.outputs.at("y"), 0), 3 / root, 1e-12);
  EXPECT_NEAR(moved.scales.at("y")[0], std::hypot(3 / root, of_root), 1e-9);
}

TEST(InterpretSizes, of_functions_that_bend_hold_for_small_errors_too) {
  // A sum of squares of cancelling terms: errors of a 256th are far beyond the bend at eps.
  const Meaning meaning = meaning_of(
      std::string(kCancels) +
          "buffer s : f64[M] temp buffer c : f64[M, N] out"
          " nest n over (M, N) { t = add(a, b) } nest k over (M) whole (N) { s = rowdot(t, t) }"
          " nest m over (M, N) { c = rms_scale(t, s; length=2, eps=0.0001) }",
      kCancelling, {"a", "b"}, 0x1p-30);
  EXPECT_NEAR(meaning.scales.at("c")[0], std::sqrt(18.0) * 100, 1);
}

TEST(InterpretSizes, of_attention_are_those_of_values_that_cancelled) {
  const Meaning meaning = meaning_of(
      "axis B = 1 axis H = 1 axis G = 1 axis Q = 1 axis K = 4 axis D = 1 axis Dv = 1"
      " buffer q : f64[B, Q, (H, G), D] in buffer k : f64[B, K, H, D] in"
      " buffer x : f64[B, K, H, Dv] in buffer z : f64[B, K, H, Dv] in"
      " buffer v : f64[B, K, H, Dv] temp buffer o : f64[B, Q, (H, G), Dv] out"
      " buffer l : f32[B, (H, G), Q] out"
      " nest n over (B, K, H, Dv) { v = add(x, z) }"
      " nest f over (B, H, G, Q, K) whole (D, Dv) { (o, l) lse= attn_fwd(q, k, v) }",
      {{"q", numbers({1, 1, 1, 1}, {0})},
       {"k", numbers({1, 4, 1, 1}, {1, 2, 3, 4})},
       {"x", numbers({1, 4, 1, 1}, {5, 5, 5, 5})},
       {"z", numbers({1, 4, 1, 1}, {-5, -5, -5, -5})}},
      {"x", "z"});
  EXPECT_EQ(load(meaning.outputs.at("o"), 0), 0);
  EXPECT_NEAR(meaning.scales.at("o")[0], std::sqrt(50.0) / 2, 1e-9) << "a mean of four";
}

TEST(InterpretSizes, of_scores_count_queries_that_are_temporaries) {
  const Meaning meaning = meaning_of(
      "axis B = 1 axis H = 1 axis G = 1 axis Q = 1 axis K = 1 axis D = 1 axis Dv = 1"
      " buffer x : f64[B, Q, (H, G), D] in buffer q : f64[B, Q, (H, G), D] temp"
      " buffer k : f64[B, K, H, D] in buffer v : f64[B, K, H, Dv] in"
      " buffer o : f64[B, Q, (H, G), Dv] out buffer l : f32[B, (H, G), Q] out"
      " nest n over (B, Q, H, G, D) { q = copy(x) }"
      " nest f over (B, H, G, Q, K) whole (D, Dv) { (o, l) lse= attn_fwd(q, k, v) }",
      {{"x", numbers({1, 1, 1, 1}, {-6})},
       {"k", numbers({1, 1, 1, 1}, {7})},
       {"v", numbers({1, 1, 1, 1}, {1})}});
  EXPECT_DOUBLE_EQ(meaning.scores.at("o").score, 42);
  EXPECT_DOUBLE_EQ(meaning.scores.at("o").logsum, 42);
}

TEST(InterpretSizes, and_values_of_functions_do_not_overflow_inside) {
  const auto value_of = [](const std::string& leaf, double x) {
    return load(meaning_of("axis N = 1 buffer a : f64[N] in buffer y : f64[N] out"
                           " nest n over (N) { y = " +
                               leaf + "(a) }",
                           {{"a", numbers({1}, {x})}})
                    .outputs.at("y"),
                0);
  };
  const double largest = std::numeric_limits<double>::max();
  for (const char* leaf : {"silu", "gelu", "relu"}) {
    EXPECT_EQ(value_of(leaf, largest), largest) << leaf;
    EXPECT_EQ(value_of(leaf, -largest), 0) << leaf;
  }
  EXPECT_DOUBLE_EQ(value_of("silu", -712), -712 * std::exp(-356.0) * std::exp(-356.0));
}

}  // namespace
}  // namespace harpe
