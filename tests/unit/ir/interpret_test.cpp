#include "ir/interpret.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "ir/instantiate.h"
#include "ir/text.h"

namespace harpe {
namespace interpret_test {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Program ground(const std::string& text) {
  Checked<Cursor> cursor = Cursor::open(text);
  EXPECT_TRUE(cursor.ok());
  Checked<Program> program = parse_program(*cursor);
  EXPECT_TRUE(program.ok()) << render(program.error());
  Checked<Program> out = instantiate(*program, {});
  EXPECT_TRUE(out.ok()) << render(out.error());
  return *out;
}

HostTensor tensor_of(std::vector<std::int64_t> shape, const std::vector<double>& values,
                     DType dtype = DType::F64) {
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

Meaning meaning_of(const Program& program, const TensorMap& inputs,
                   const std::optional<RowSample>& sample = std::nullopt, int threads = 1) {
  Checked<Meaning> meaning = interpret(program, inputs, sample, threads);
  EXPECT_TRUE(meaning.ok()) << render(meaning.error());
  return std::move(meaning).value();
}

std::string gemm_text(const std::string& m, const std::string& n, const std::string& k,
                      const std::string& dtype = "f64") {
  return "program gemm { axis M = " + m + " axis N = " + n + " axis K = " + k +
         " buffer a : " + dtype + "[M, K] in buffer b : " + dtype +
         "[K, N] in buffer c : " + dtype +
         "[M, N] out nest mm over (M, N, K) { c sum= matmul(a, b) } }";
}

struct Sizes {
  int batch = 2, queries = 5, keys = 7, heads = 2, group = 3, dim = 4, value_dim = 3;
};

std::string attention_text(const Sizes& s, bool causal, const std::string& attrs = "") {
  const auto axis = [](const char* name, int size) {
    return " axis " + std::string(name) + " = " + std::to_string(size);
  };
  return "program attention {" + axis("B", s.batch) + axis("Sq", s.queries) + axis("Skv", s.keys) +
         axis("H", s.heads) + axis("G", s.group) + axis("D", s.dim) + axis("Dv", s.value_dim) +
         " buffer q : f64[B, Sq, (H, G), D] in buffer k : f64[B, Skv, H, D] in"
         " buffer v : f64[B, Skv, H, Dv] in buffer o : f64[B, Sq, (H, G), Dv] out"
         " buffer l : f64[B, (H, G), Sq] out"
         " nest fwd over (B, H, G, Sq, Skv) whole (D, Dv) { (o, l) lse= attn_fwd(q, k, v" +
         attrs + ")" + (causal ? " where causal(Sq, Skv)" : "") + " } }";
}

TensorMap attention_inputs(const Sizes& s) {
  const int heads = s.heads * s.group;
  return {{"q", random_tensor(DType::F64, {s.batch, s.queries, heads, s.dim}, 1, "q")},
          {"k", random_tensor(DType::F64, {s.batch, s.keys, s.heads, s.dim}, 1, "k")},
          {"v", random_tensor(DType::F64, {s.batch, s.keys, s.heads, s.value_dim}, 1, "v")}};
}

TEST(Interpret, multiplies_two_matrices_worked_out_by_hand) {
  const Meaning meaning =
      meaning_of(ground(gemm_text("2", "2", "2")),
                 {{"a", tensor_of({2, 2}, {1, 2, 3, 4})}, {"b", tensor_of({2, 2}, {5, 6, 7, 8})}});
  EXPECT_EQ(values_of(meaning.outputs.at("c")), (std::vector<double>{19, 22, 43, 50}));
  EXPECT_EQ(meaning.outputs.at("c").dtype, DType::F64);
  EXPECT_TRUE(meaning.sampled_rows.at("c").empty());
  EXPECT_EQ(meaning.outputs.size(), 1U);
}

TEST(Interpret, rounds_inputs_to_their_buffer_and_nothing_else) {
  // 1 + 2^-9 is not a bf16 number; its product with 1 would be exact in f64.
  const Meaning meaning =
      meaning_of(ground(gemm_text("1", "1", "1", "bf16")),
                 {{"a", tensor_of({1, 1}, {1.001953125})}, {"b", tensor_of({1, 1}, {1.0078125})}});
  EXPECT_EQ(values_of(meaning.outputs.at("c")), std::vector<double>{1.0078125});
  const Meaning square =
      meaning_of(ground(gemm_text("1", "1", "1", "bf16")),
                 {{"a", tensor_of({1, 1}, {1.0078125})}, {"b", tensor_of({1, 1}, {1.0078125})}});
  EXPECT_EQ(values_of(square.outputs.at("c")), std::vector<double>{1.0078125 * 1.0078125});
}

TEST(Interpret, finds_the_axes_of_a_matmul_by_name_in_any_order) {
  // c[N, B, M] = sum over (J, K) of a[B, J, M, K] * b[K, N, B, J], with axes in mixed order and in
  // products.
  const Program program = ground(
      "program batched { axis B = 3 axis M = 5 axis N = 4 axis J = 2 axis K = 7"
      " buffer a : f32[B, (J, M), K] in buffer b : f16[K, N, (B, J)] in"
      " buffer c : f64[N, B, M] out"
      " nest mm over (B, M, N, J, K) { c sum= matmul(a, b) } }");
  const HostTensor a = random_tensor(DType::F32, {3, 10, 7}, 1, "a");
  const HostTensor b = random_tensor(DType::F16, {7, 4, 6}, 1, "b");
  const Meaning meaning = meaning_of(program, {{"a", a}, {"b", b}}, std::nullopt, 2);
  const HostTensor& c = meaning.outputs.at("c");
  for (std::int64_t batch = 0; batch < 3; ++batch) {
    for (std::int64_t m = 0; m < 5; ++m) {
      for (std::int64_t n = 0; n < 4; ++n) {
        double sum = 0;
        for (std::int64_t j = 0; j < 2; ++j) {
          for (std::int64_t k = 0; k < 7; ++k) {
            sum += load(a, (batch * 10 + j * 5 + m) * 7 + k) *
                   load(b, (k * 4 + n) * 6 + batch * 2 + j);
          }
        }
        // 14 products of numbers below 1, summed in another order.
        EXPECT_NEAR(load(c, (n * 3 + batch) * 5 + m), sum, 14 * 14 * unit_roundoff(DType::F64));
      }
    }
  }
}

TEST(Interpret, multiplies_across_the_borders_of_its_panels) {
  const Program program = ground(gemm_text("130", "260", "300"));
  const HostTensor a = random_tensor(DType::F64, {130, 300}, 1, "a");
  const HostTensor b = random_tensor(DType::F64, {300, 260}, 1, "b");
  const Meaning meaning = meaning_of(program, {{"a", a}, {"b", b}}, std::nullopt, 3);
  for (std::int64_t i = 0; i < 130; ++i) {
    for (std::int64_t j = i % 7; j < 260; j += 7) {
      long double sum = 0;
      for (std::int64_t k = 0; k < 300; ++k) {
        sum += static_cast<long double>(load(a, i * 300 + k)) * load(b, k * 260 + j);
      }
      // 300 terms below 1: 300 roundings of sums below 300.
      ASSERT_NEAR(load(meaning.outputs.at("c"), i * 260 + j), static_cast<double>(sum),
                  300 * 300 * unit_roundoff(DType::F64));
    }
  }
}

TEST(Interpret, renames_axes_of_an_access) {
  const Program program = ground(
      "program gram { axis M = 3 axis N = 3 axis K = 5 buffer a : f64[M, K] in"
      " buffer c : f64[M, N] out nest mm over (M, N, K) { c sum= matmul(a, a[M=N]) } }");
  const HostTensor a = random_tensor(DType::F64, {3, 5}, 1, "a");
  const Meaning meaning = meaning_of(program, {{"a", a}});
  double sum = 0;
  for (std::int64_t k = 0; k < 5; ++k) sum += load(a, 5 + k) * load(a, 10 + k);
  EXPECT_NEAR(load(meaning.outputs.at("c"), 5), sum, 25 * unit_roundoff(DType::F64));
}

TEST(Interpret, executes_nests_in_order_through_temporaries) {
  const Program program = ground(
      "program chain { axis M = 300 axis N = 2 axis K = 3 axis P = 2"
      " buffer a : f64[M, K] in buffer b : f64[K, N] in buffer d : f64[N, P] in"
      " buffer t : f64[M, N] temp buffer c : f64[M, P] out"
      " nest one over (M, N, K) { t sum= matmul(a, b) }"
      " nest two over (M, N, P) { c sum= matmul(t, d) } }");
  const TensorMap inputs{{"a", random_tensor(DType::F64, {300, 3}, 1, "a")},
                         {"b", random_tensor(DType::F64, {3, 2}, 1, "b")},
                         {"d", tensor_of({2, 2}, {1, 0, 0, 1})}};
  const Meaning whole = meaning_of(program, inputs);
  double sum = 0;
  for (std::int64_t k = 0; k < 3; ++k) {
    sum += load(inputs.at("a"), 299 * 3 + k) * load(inputs.at("b"), k * 2 + 1);
  }
  EXPECT_NEAR(load(whole.outputs.at("c"), 599), sum, 1e-15);
  EXPECT_FALSE(whole.outputs.contains("t"));
  // Sampling does not change what later nests read.
  const Meaning sampled =
      meaning_of(program, inputs, RowSample{.seed = 1, .rows = 10, .query_borders = {}});
  ASSERT_FALSE(sampled.sampled_rows.at("c").empty());
  for (const std::int64_t row : sampled.sampled_rows.at("c")) {
    EXPECT_EQ(load(sampled.outputs.at("c"), row * 2), load(whole.outputs.at("c"), row * 2));
  }
}

TEST(Interpret, copies_by_axis_names) {
  const Program program = ground(
      "program turn { axis M = 2 axis N = 3 buffer x : bf16[M, N] in buffer y : bf16[N, M] out"
      " nest move over (M, N) { y = copy(x) } }");
  const Meaning meaning =
      meaning_of(program, {{"x", tensor_of({2, 3}, {1, 2, 3, 4, 5, 6}, DType::BF16)}});
  EXPECT_EQ(values_of(meaning.outputs.at("y")), (std::vector<double>{1, 4, 2, 5, 3, 6}));
}

TEST(Interpret, attends_to_two_keys_worked_out_by_hand) {
  const Sizes one{
      .batch = 1, .queries = 1, .keys = 2, .heads = 1, .group = 1, .dim = 1, .value_dim = 2};
  const TensorMap inputs{{"q", tensor_of({1, 1, 1, 1}, {2})},
                         {"k", tensor_of({1, 2, 1, 1}, {std::log(3.0), 0})},
                         {"v", tensor_of({1, 2, 1, 2}, {1, 10, 5, 20})}};
  // Scores ln 3 and 0 under scale 1/2: weights 3/4 and 1/4.
  const Meaning meaning = meaning_of(ground(attention_text(one, false, "; scale=0.5")), inputs);
  EXPECT_NEAR(load(meaning.outputs.at("o"), 0), 2.0, 1e-15);
  EXPECT_NEAR(load(meaning.outputs.at("o"), 1), 12.5, 1e-14);
  EXPECT_NEAR(load(meaning.outputs.at("l"), 0), std::log(4.0), 1e-15);
  // Without the attribute the scale is 1 / sqrt(1).
  const Meaning plain = meaning_of(ground(attention_text(one, false)), inputs);
  EXPECT_NEAR(load(plain.outputs.at("l"), 0), std::log(10.0), 1e-15);
}

// The formula without its maximum, over flat indices: grouped heads, bottom-right mask.
void expect_attention(const Sizes& s, bool causal, const TensorMap& inputs,
                      const Meaning& meaning) {
  const int heads = s.heads * s.group;
  const auto at = [&](const char* name, std::int64_t index) {
    return load(inputs.at(name), index);
  };
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t query = 0; query < s.queries; ++query) {
      for (std::int64_t head = 0; head < heads; ++head) {
        const std::int64_t row = (b * s.queries + query) * heads + head;
        std::vector<double> numerator(static_cast<std::size_t>(s.value_dim));
        double denominator = 0;
        for (std::int64_t key = 0; key < s.keys; ++key) {
          if (causal && key - query > s.keys - s.queries) continue;
          const std::int64_t kv = (b * s.keys + key) * s.heads + head / s.group;
          double dot = 0;
          for (std::int64_t i = 0; i < s.dim; ++i) {
            dot += at("q", row * s.dim + i) * at("k", kv * s.dim + i);
          }
          const double weight = std::exp(dot / std::sqrt(static_cast<double>(s.dim)));
          denominator += weight;
          for (std::int64_t i = 0; i < s.value_dim; ++i) {
            numerator[static_cast<std::size_t>(i)] += weight * at("v", kv * s.value_dim + i);
          }
        }
        // About 10 (dim + keys) roundings of numbers of size 1.
        const double bound = 10 * (s.dim + s.keys) * unit_roundoff(DType::F64);
        const std::int64_t l = (b * heads + head) * s.queries + query;
        if (denominator == 0) {
          EXPECT_EQ(load(meaning.outputs.at("l"), l), -kInfinity);
        } else {
          EXPECT_NEAR(load(meaning.outputs.at("l"), l), std::log(denominator), bound);
        }
        for (std::int64_t i = 0; i < s.value_dim; ++i) {
          const double expected =
              denominator == 0 ? 0 : numerator[static_cast<std::size_t>(i)] / denominator;
          EXPECT_NEAR(load(meaning.outputs.at("o"), row * s.value_dim + i), expected, bound)
              << b << " " << query << " " << head;
        }
      }
    }
  }
}

TEST(Interpret, attends_like_another_formula_with_grouped_heads_and_masks) {
  for (const bool causal : {false, true}) {
    for (const auto& [queries, keys] : {std::pair{5, 7}, {7, 5}, {1, 9}, {130, 130}}) {
      const Sizes sizes{.queries = queries, .keys = keys};
      const TensorMap inputs = attention_inputs(sizes);
      const Meaning meaning =
          meaning_of(ground(attention_text(sizes, causal)), inputs, std::nullopt, 2);
      expect_attention(sizes, causal, inputs, meaning);
    }
  }
}

TEST(Interpret, gives_rows_without_visible_keys_zero_and_minus_infinity) {
  const Sizes sizes{.batch = 1, .queries = 4, .keys = 2, .heads = 1, .group = 1};
  const Meaning meaning = meaning_of(ground(attention_text(sizes, true)), attention_inputs(sizes));
  EXPECT_EQ(load(meaning.outputs.at("l"), 0), -kInfinity);
  EXPECT_EQ(load(meaning.outputs.at("l"), 1), -kInfinity);
  EXPECT_TRUE(std::isfinite(load(meaning.outputs.at("l"), 2)));
  for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(load(meaning.outputs.at("o"), i), 0.0);
}

TEST(Interpret, lets_a_nan_reach_exactly_who_sees_it) {
  const Sizes sizes{.batch = 1, .queries = 6, .keys = 6, .heads = 1, .group = 1};
  TensorMap inputs = attention_inputs(sizes);
  store(inputs.at("v"), 3 * sizes.value_dim, std::nan(""));
  const Program program = ground(attention_text(sizes, true));
  const Meaning by_value = meaning_of(program, inputs);
  for (std::int64_t query = 0; query < 6; ++query) {
    EXPECT_EQ(std::isnan(load(by_value.outputs.at("o"), query * sizes.value_dim)), query >= 3);
    EXPECT_FALSE(std::isnan(load(by_value.outputs.at("o"), query * sizes.value_dim + 1)));
    EXPECT_FALSE(std::isnan(load(by_value.outputs.at("l"), query)));
  }
  store(inputs.at("k"), 4 * sizes.dim, std::nan(""));
  const Meaning by_key = meaning_of(program, inputs);
  for (std::int64_t query = 0; query < 6; ++query) {
    EXPECT_EQ(std::isnan(load(by_key.outputs.at("o"), query * sizes.value_dim + 1)), query >= 4);
    EXPECT_EQ(std::isnan(load(by_key.outputs.at("l"), query)), query >= 4);
  }
}

TEST(Interpret, is_bitwise_the_same_on_any_number_of_threads) {
  const Sizes sizes{.queries = 150, .keys = 90};
  const Program program = ground(attention_text(sizes, true));
  const TensorMap inputs = attention_inputs(sizes);
  const Meaning one = meaning_of(program, inputs, std::nullopt, 1);
  const Meaning five = meaning_of(program, inputs, std::nullopt, 5);
  EXPECT_EQ(one.outputs.at("o").data, five.outputs.at("o").data);
  EXPECT_EQ(one.outputs.at("l").data, five.outputs.at("l").data);
}

TEST(Interpret, computes_a_sample_of_a_product_with_its_borders_and_marks_the_rest) {
  const Program program = ground(gemm_text("1000", "3", "4"));
  const TensorMap inputs{{"a", random_tensor(DType::F64, {1000, 4}, 1, "a")},
                         {"b", random_tensor(DType::F64, {4, 3}, 1, "b")}};
  const Meaning whole = meaning_of(program, inputs);
  const Meaning part = meaning_of(
      program, inputs, RowSample{.seed = 7, .rows = 50, .query_borders = {0, 124, 125, 999, 5000}});
  const std::vector<std::int64_t>& rows = part.sampled_rows.at("c");
  EXPECT_GE(std::ssize(rows), 50);
  EXPECT_LE(std::ssize(rows), 60);
  EXPECT_TRUE(std::ranges::is_sorted(rows));
  for (const std::int64_t border : {0, 124, 125, 999}) {
    EXPECT_TRUE(std::ranges::binary_search(rows, border)) << border;
  }
  for (std::int64_t row = 0; row < 1000; ++row) {
    for (std::int64_t i = row * 3; i < row * 3 + 3; ++i) {
      if (std::ranges::binary_search(rows, row)) {
        EXPECT_EQ(load(part.outputs.at("c"), i), load(whole.outputs.at("c"), i));
      } else {
        EXPECT_TRUE(std::isnan(load(part.outputs.at("c"), i)));
      }
    }
  }
  // With fewer rows than requested, all rows are sampled.
  const Meaning all =
      meaning_of(program, inputs, RowSample{.seed = 7, .rows = 1000, .query_borders = {}});
  EXPECT_TRUE(all.sampled_rows.at("c").empty());
  EXPECT_EQ(all.outputs.at("c").data, whole.outputs.at("c").data);
}

TEST(Interpret, computes_a_sample_of_attention_over_batches_and_heads) {
  const Sizes sizes{.batch = 2, .queries = 100, .keys = 40};
  const Program program = ground(attention_text(sizes, true));
  const TensorMap inputs = attention_inputs(sizes);
  const Meaning whole = meaning_of(program, inputs);
  const Meaning part = meaning_of(
      program, inputs, RowSample{.seed = 3, .rows = 64, .query_borders = {49, 50, 99}}, 2);
  const int heads = sizes.heads * sizes.group;
  const std::vector<std::int64_t>& rows = part.sampled_rows.at("o");
  EXPECT_EQ(std::ssize(rows), 64);
  std::int64_t on_borders = 0, in_last_batch = 0, computed = 0;
  for (const std::int64_t row : rows) {
    const std::int64_t query = row / heads % sizes.queries;
    on_borders += query == 49 || query == 50 || query == 99 ? 1 : 0;
    in_last_batch += row >= sizes.queries * heads ? 1 : 0;
    for (std::int64_t i = row * sizes.value_dim; i < (row + 1) * sizes.value_dim; ++i) {
      EXPECT_EQ(load(part.outputs.at("o"), i), load(whole.outputs.at("o"), i));
    }
  }
  EXPECT_GE(on_borders, 3);
  EXPECT_GT(in_last_batch, 0);
  for (std::int64_t i = 0; i < element_count(whole.outputs.at("l")); ++i) {
    const double logarithm = load(part.outputs.at("l"), i);
    if (std::isnan(logarithm)) continue;
    ++computed;
    EXPECT_EQ(logarithm, load(whole.outputs.at("l"), i));
    EXPECT_TRUE(std::ranges::binary_search(part.sampled_rows.at("l"), i / sizes.queries));
  }
  EXPECT_EQ(computed, 64);
  // Another seed gives another sample; the same seed gives the same one.
  const auto sampled = [&](std::uint64_t seed) {
    return meaning_of(program, inputs, RowSample{.seed = seed, .rows = 64, .query_borders = {}})
        .sampled_rows.at("o");
  };
  EXPECT_EQ(sampled(1), sampled(1));
  EXPECT_NE(sampled(1), sampled(2));
}

TEST(Interpret, refuses_what_it_has_no_meaning_for) {
  const auto refusal = [](const Program& program, const TensorMap& inputs) {
    const Checked<Meaning> meaning = interpret(program, inputs, std::nullopt, 1);
    EXPECT_FALSE(meaning.ok());
    return render(meaning.error());
  };
  const HostTensor square = make_tensor(DType::F64, {2, 2});
  Program gemm = ground(gemm_text("2", "2", "2"));
  EXPECT_EQ(refusal(gemm, {{"a", square}}),
            "error[P202]: input `b` of program `gemm` is missing; give it a value");
  EXPECT_EQ(refusal(gemm, {{"a", square}, {"b", make_tensor(DType::F64, {2, 3})}}),
            "error[P203]: input `b` has shape [2, 3], where its buffer has [2, 2]");
  HostTensor torn = square;
  torn.data.resize(8);
  EXPECT_EQ(refusal(gemm, {{"a", square}, {"b", torn}}).substr(0, 12), "error[P203]:");

  Program unknown = ground(
      "program act { axis M = 2 buffer x : f32[M] in buffer y : f32[M] out leaf matmull flops M"
      " nest n over (M) { y = matmull(x) } }");
  EXPECT_EQ(
      refusal(unknown, {{"x", make_tensor(DType::F32, {2})}}),
      "error[P201]: nest `n`: leaf `matmull` has no reference meaning (did you mean `matmul`?)");

  Program flat = ground(
      "program flat { axis M = 2 axis N = 2 axis D = 2 buffer q : f32[M, D] in"
      " buffer k : f32[N, D] in buffer v : f32[N, D] in buffer o : f32[M, D] out"
      " buffer l : f32[M] out nest n over (M, N) whole (D) { (o, l) lse= attn_fwd(q, k, v) } }");
  EXPECT_EQ(
      refusal(flat, {{"q", square}, {"k", square}, {"v", square}}),
      "error[P205]: nest `n`: `q` does not fit leaf `attn_fwd`: it has 2 dimensions, not batch, "
      "position, heads and features");
}

TEST(Interpret, refuses_routed_accesses) {
  const Program program = ground(
      "program routed { axis T = 4 axis W = 1 axis E = 2 axis C = 2 axis H = 3"
      " buffer x : f32[T, H] in buffer idx : i32[T, W] in buffer y : f32[E, C, H] out"
      " route R : (E, C) <- (T, W) by idx exact"
      " nest n over (E, C, H) { y = copy(x[T=R.T]) } }");
  const Checked<Meaning> meaning = interpret(
      program, {{"x", make_tensor(DType::F32, {4, 3})}, {"idx", make_tensor(DType::I32, {4, 1})}},
      std::nullopt, 1);
  ASSERT_FALSE(meaning.ok());
  EXPECT_EQ(render(meaning.error()),
            "error[P204]: nest `n`: leaf `copy` does not follow route `R`; use `gather_rows` or "
            "`combine_rows`");
}

TEST(FlopsOf, evaluates_the_leaf_polynomial_or_counts_two_per_point) {
  EXPECT_EQ(flops_of(ground(gemm_text("3", "5", "7"))), 2.0 * 3 * 5 * 7);
  EXPECT_EQ(flops_of(ground("program p { axis M = 6 axis N = 4 buffer x : f32[M, N] in"
                            " buffer y : f32[M, N] out leaf copy flops 3*M/2 + N*N + 1"
                            " nest n over (M, N) { y = copy(x) } }")),
            3.0 * 6 / 2 + 16 + 1);
}

}  // namespace interpret_test
}  // namespace harpe
