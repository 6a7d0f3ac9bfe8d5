#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "ir/instantiate.h"
#include "ir/interpret.h"
#include "ir/text.h"

namespace harpe {
namespace interpret_backward_test {

struct Sizes {
  std::int64_t batch = 1, queries = 3, keys = 4, kv_heads = 1, group = 1, head_dim = 2,
               value_dim = 2;
  bool causal = false;
  std::string segments = "";  // document ids of the positions, one digit each
};

// A program with forward and backward axes and buffers, and the requested nests.
Program make(const Sizes& s, const std::string& roles, const std::string& nests) {
  const auto axis = [](const char* name, std::int64_t size) {
    return " axis " + std::string(name) + " = " + std::to_string(size);
  };
  const std::string text = "program p {" + axis("B", s.batch) + axis("Sq", s.queries) +
                           axis("Skv", s.keys) + axis("H", s.kv_heads) + axis("G", s.group) +
                           axis("D", s.head_dim) + axis("Dv", s.value_dim) + axis("S", s.keys) +
                           (s.segments.empty() ? "" : " buffer seg : i32[B, S] in") +
                           " buffer q : f64[B, Sq, (H, G), D] in buffer k : f64[B, Skv, H, D] in"
                           " buffer v : f64[B, Skv, H, Dv] in" +
                           roles + nests + "}";
  Checked<Cursor> cursor = Cursor::open(text);
  EXPECT_TRUE(cursor.ok());
  Checked<Program> program = parse_program(*cursor);
  EXPECT_TRUE(program.ok()) << render(program.error());
  return std::move(program).value();
}

std::string mask(const Sizes& s) {
  std::string masks = s.causal ? " where causal(Sq, Skv)" : "";
  if (!s.segments.empty())
    masks += (s.causal ? " and" : " where") + std::string(" doc(Sq, Skv, seg)");
  return masks + " }";
}

Program forward_of(const Sizes& s) {
  return make(
      s, " buffer o : f64[B, Sq, (H, G), Dv] out buffer lse : f64[B, (H, G), Sq] out",
      " nest fwd over (B, H, G, Sq, Skv) whole (D, Dv, S) { (o, lse) lse= attn_fwd(q, k, v)" +
          mask(s));
}

Program backward_of(const Sizes& s) {
  return make(s,
              " buffer o : f64[B, Sq, (H, G), Dv] in buffer lse : f64[B, (H, G), Sq] in"
              " buffer do : f64[B, Sq, (H, G), Dv] in buffer delta : f64[B, (H, G), Sq] temp"
              " buffer dq : f64[B, Sq, (H, G), D] out buffer dk : f64[B, Skv, H, D] out"
              " buffer dv : f64[B, Skv, H, Dv] out",
              " nest pre over (B, H, G, Sq) whole (Dv) { delta = rowdot(o, do) }"
              " nest bwd over (B, H, G, Sq, Skv) whole (D, Dv, S) {"
              " (dq, dk, dv) sum= attn_bwd(q, k, v, do, lse, delta)" +
                  mask(s));
}

Meaning run(const Program& program, const TensorMap& inputs,
            const std::optional<RowSample>& sample = std::nullopt, int threads = 1) {
  Checked<Meaning> meaning = interpret(program, inputs, sample, threads);
  EXPECT_TRUE(meaning.ok()) << render(meaning.error());
  return std::move(meaning).value();
}

// Random inputs of the backward program; o and lse belong to q, k and v.
TensorMap inputs_of(const Sizes& s) {
  TensorMap inputs;
  const Program backward = backward_of(s);
  for (const char* name : {"q", "k", "v", "do"}) {
    inputs[name] =
        random_tensor(DType::F64, shape_of(backward, *find_buffer(backward, name)), 3, name);
  }
  if (!s.segments.empty()) {
    HostTensor& segments = inputs["seg"] = make_tensor(DType::I32, {s.batch, s.keys});
    for (std::int64_t i = 0; i < s.batch * s.keys; ++i) {
      store(segments, i, s.segments[static_cast<std::size_t>(i)] - '0');
    }
  }
  const Meaning forward = run(forward_of(s), inputs);
  inputs["o"] = forward.outputs.at("o");
  inputs["lse"] = forward.outputs.at("lse");
  return inputs;
}

// The sum of o times do, whose gradients are dq, dk and dv.
double objective(const Sizes& s, const TensorMap& inputs) {
  const Meaning forward = run(forward_of(s), inputs);
  const HostTensor& o = forward.outputs.at("o");
  double sum = 0;
  for (std::int64_t i = 0; i < element_count(o); ++i) sum += load(o, i) * load(inputs.at("do"), i);
  return sum;
}

void compare_with_differences(const Sizes& s) {
  TensorMap inputs = inputs_of(s);
  const Meaning meaning = run(backward_of(s), inputs);
  for (const char* name : {"q", "k", "v"}) {
    const HostTensor& gradient = meaning.outputs.at("d" + std::string(name));
    HostTensor& input = inputs.at(name);
    for (std::int64_t i = 0; i < element_count(input); ++i) {
      constexpr double kStep = 1e-5;
      const double x = load(input, i);
      store(input, i, x + kStep);
      const double above = objective(s, inputs);
      store(input, i, x - kStep);
      const double below = objective(s, inputs);
      store(input, i, x);
      // The third derivative is about 1; values err by 1e-15.
      EXPECT_NEAR(load(gradient, i), (above - below) / (2 * kStep), 2e-9) << name << " " << i;
    }
  }
}

TEST(InterpretBackward, is_what_finite_differences_of_attention_give) {
  compare_with_differences({});
  compare_with_differences({.queries = 4, .keys = 4, .causal = true});
  compare_with_differences({.batch = 2,
                            .queries = 3,
                            .keys = 5,
                            .kv_heads = 2,
                            .group = 2,
                            .head_dim = 3,
                            .value_dim = 1,
                            .causal = true});
}

TEST(InterpretBackward, of_packed_documents_is_what_finite_differences_give) {
  compare_with_differences({.queries = 5, .keys = 5, .segments = "00122"});
  compare_with_differences({.batch = 2,
                            .queries = 4,
                            .keys = 4,
                            .kv_heads = 2,
                            .group = 2,
                            .causal = true,
                            .segments = "01110022"});
}

TEST(InterpretBackward, of_queries_that_see_nothing_is_zero) {
  const Sizes s{.queries = 6, .keys = 2, .causal = true};
  const Meaning meaning = run(backward_of(s), inputs_of(s));
  const HostTensor& dq = meaning.outputs.at("dq");
  for (std::int64_t i = 0; i < 4 * s.head_dim; ++i) EXPECT_EQ(load(dq, i), 0) << i;
  compare_with_differences(s);
}

TEST(InterpretBackward, lets_a_nan_reach_exactly_who_sees_it) {
  const Sizes s{.queries = 5, .keys = 5, .causal = true};
  TensorMap inputs = inputs_of(s);
  store(inputs.at("k"), 3 * s.head_dim, std::nan(""));  // key 3: seen by queries 3 and 4
  const Meaning meaning = run(backward_of(s), inputs);
  for (std::int64_t query = 0; query < s.queries; ++query) {
    EXPECT_EQ(std::isnan(load(meaning.outputs.at("dq"), query * s.head_dim)), query >= 3) << query;
  }
  for (std::int64_t key = 0; key < s.keys; ++key) {
    EXPECT_EQ(std::isnan(load(meaning.outputs.at("dv"), key * s.value_dim)), key == 3) << key;
  }
}

TEST(InterpretBackward, is_bitwise_the_same_on_any_number_of_threads_and_in_samples) {
  const Sizes s{.queries = 300, .keys = 290, .kv_heads = 2, .group = 2, .causal = true};
  const TensorMap inputs = inputs_of(s);
  const Meaning one = run(backward_of(s), inputs);
  const Meaning three = run(backward_of(s), inputs, std::nullopt, 3);
  const Meaning sample =
      run(backward_of(s), inputs, RowSample{.seed = 5, .rows = 40, .query_borders = {0, 150}});
  for (const auto& [name, tensor] : one.outputs) {
    EXPECT_EQ(three.outputs.at(name).data, tensor.data) << name;
    const std::vector<std::int64_t>& rows = sample.sampled_rows.at(name);
    EXPECT_GE(rows.size(), 40U) << name;
    const std::int64_t width = tensor.shape.back();
    for (const std::int64_t row : rows) {
      for (std::int64_t i = row * width; i < (row + 1) * width; ++i) {
        EXPECT_EQ(load(sample.outputs.at(name), i), load(tensor, i)) << name << " " << row;
      }
    }
  }
}

TEST(InterpretBackward, says_how_large_the_terms_of_a_row_are) {
  // The first query sees one key: the terms of its dq cancel, but their size remains.
  const Sizes s{.queries = 8, .keys = 8, .causal = true};
  const Meaning meaning = run(backward_of(s), inputs_of(s));
  EXPECT_NEAR(load(meaning.outputs.at("dq"), 0), 0, 1e-15);
  EXPECT_GT(meaning.scales.at("dq")[0], 1e-3);
  for (const auto& [name, scales] : meaning.scales) {
    for (const double scale : scales) EXPECT_TRUE(scale > 0 && scale < 10) << name << " " << scale;
  }
}

TEST(InterpretRowDot, multiplies_rows_worked_out_by_hand) {
  Checked<Cursor> cursor = Cursor::open(
      "program p { axis A = 2 axis K = 3 buffer x : f64[A, K] in buffer y : f64[K, A] in"
      " buffer z : f64[A] out nest n over (A) whole (K) { z = rowdot(x, y) } }");
  const Checked<Program> program = parse_program(*cursor);
  ASSERT_TRUE(program.ok()) << render(program.error());
  TensorMap inputs;
  inputs["x"] = make_tensor(DType::F64, {2, 3});
  inputs["y"] = make_tensor(DType::F64, {3, 2});
  for (std::int64_t i = 0; i < 6; ++i) {
    store(inputs["x"], i, static_cast<double>(i + 1));
    store(inputs["y"], i, static_cast<double>(i + 1));
  }
  const Meaning meaning = run(*program, inputs);
  EXPECT_EQ(load(meaning.outputs.at("z"), 0), 1 + 2 * 3 + 3 * 5);
  EXPECT_EQ(load(meaning.outputs.at("z"), 1), 4 * 2 + 5 * 4 + 6 * 6);
}

TEST(InterpretBackward, refuses_buffers_whose_axes_play_no_part) {
  const Sizes s;
  Program program = backward_of(s);
  for (Access& access : program.nests[1].stmts[0].operands) {
    if (access.buffer == "lse") access.buffer = "o";
  }
  const Checked<Meaning> meaning = interpret(program, inputs_of(s), std::nullopt, 1);
  ASSERT_FALSE(meaning.ok());
  EXPECT_EQ(meaning.error().code, DiagCode::P205);
}

}  // namespace interpret_backward_test
}  // namespace harpe
