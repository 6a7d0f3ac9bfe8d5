#include "exec/cpu/kernels/attention_backward.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "exec/cpu/kernels/rowdot.h"
#include "tests/unit/kernels/matrices.h"

namespace harpe {
namespace attention_backward_test {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

struct Case {
  DType dtype = DType::F32;
  std::int64_t queries = 1, keys = 1, head_dim = 1, value_dim = 1;
  bool transposed = false;  // k and v
  std::int64_t gap = 0;
  bool masked = false;
  std::int64_t diagonal = 0;
  std::int64_t low = -Visibility::kUnbounded;
  std::int64_t prefix = 0;
  double scale = 0.3;
};

std::string describe(const Case& c) {
  std::string out{print(c.dtype)};
  for (const std::int64_t extent : {c.queries, c.keys, c.head_dim, c.value_dim}) {
    out += " " + std::to_string(extent);
  }
  return out + (c.transposed ? " transposed" : "") + " gap " + std::to_string(c.gap) +
         (c.masked ? " diagonal " + std::to_string(c.diagonal) : std::string());
}

// Operands and results of one head; lse belongs to its own scores.
struct Head {
  explicit Head(const Case& c)
      : shape(c),
        q(c.dtype, c.queries, c.head_dim, false, c.gap, 1),
        k(c.dtype, c.keys, c.head_dim, c.transposed, c.gap, 2),
        v(c.dtype, c.keys, c.value_dim, c.transposed, c.gap, 3),
        d_o(c.dtype, c.queries, c.value_dim, false, c.gap, 4),
        lse(DType::F32, c.queries, 1, false, c.gap, 5),
        delta(DType::F32, c.queries, 1, false, c.gap, 6),
        dq(state_dtype(c.dtype), c.queries, c.head_dim, false, c.gap, 7),
        dk(state_dtype(c.dtype), c.keys, c.head_dim, false, c.gap, 8),
        dv(state_dtype(c.dtype), c.keys, c.value_dim, false, c.gap, 9) {
    for (std::int64_t query = 0; query < c.queries; ++query) {
      double sum = 0;
      for (std::int64_t key = 0; key < c.keys; ++key) {
        if (sees(query, key)) sum += std::exp(c.scale * dot(q, query, k, key, c.head_dim));
      }
      lse.set(query, 0, sum == 0 ? kNothing : std::log(sum));
    }
  }

  [[nodiscard]] bool sees(std::int64_t query, std::int64_t key) const {
    const bool in_band = shape.low <= key - query && key - query <= shape.diagonal;
    return !shape.masked || key < shape.prefix || in_band;
  }
  static double dot(const Matrix& a, std::int64_t row, const Matrix& b, std::int64_t other,
                    std::int64_t length) {
    double sum = 0;
    for (std::int64_t i = 0; i < length; ++i) sum += a.at(row, i) * b.at(other, i);
    return sum;
  }
  void run(bool carry) {
    const auto rows = [](Matrix& values) {
      return RowValues{values.data(), DType::F32, values.row_stride()};
    };
    const auto sums = [carry](Matrix& sum) {
      return SumMatrix{sum.data(), sum.row_stride(), carry};
    };
    differentiate_attention({.queries = shape.queries,
                             .keys = shape.keys,
                             .head_dim = shape.head_dim,
                             .value_dim = shape.value_dim,
                             .q = q.view(),
                             .k = k.view(),
                             .v = v.view(),
                             .d_o = d_o.view(),
                             .lse = rows(lse),
                             .delta = rows(delta),
                             .dq = sums(dq),
                             .dk = sums(dk),
                             .dv = sums(dv),
                             .scale = shape.scale,
                             .visible = shape.masked ? Visibility{.low = shape.low,
                                                                  .high = shape.diagonal,
                                                                  .prefix = shape.prefix}
                                                     : Visibility()});
  }

  Case shape;
  Matrix q, k, v, d_o, lse, delta, dq, dk, dv;
};

// The exact gradient, and a bound on its rounding error.
struct Sum {
  Sum(std::int64_t rows, std::int64_t columns)
      : width(columns), value(static_cast<std::size_t>(rows * columns)), size(value.size()) {}
  void add(std::int64_t row, std::int64_t column, double term, double error) {
    value[static_cast<std::size_t>(row * width + column)] += term;
    size[static_cast<std::size_t>(row * width + column)] += error;
  }
  std::int64_t width;
  std::vector<double> value;
  std::vector<double> size;
};

struct Textbook {
  explicit Textbook(const Head& head)
      : dq(head.shape.queries, head.shape.head_dim),
        dk(head.shape.keys, head.shape.head_dim),
        dv(head.shape.keys, head.shape.value_dim) {
    for (std::int64_t query = 0; query < head.shape.queries; ++query) {
      for (std::int64_t key = 0; key < head.shape.keys; ++key) {
        if (head.sees(query, key) && head.lse.at(query, 0) != kNothing) add(head, query, key);
      }
    }
  }

  // u is half a unit in the last place of a state. A weight e^(scale q k - l) errs by (D + 4) u
  // times the sum of its score's terms, 2 u |l| and a few u; do v by (Dv + 2) u times the sum of
  // its terms; a sum of n terms by n u times the sum of their sizes.
  void add(const Head& head, std::int64_t query, std::int64_t key) {
    const Case& c = head.shape;
    const double u = unit_roundoff(state_dtype(c.dtype));
    double score_terms = 0, value_terms = 0;
    for (std::int64_t i = 0; i < c.head_dim; ++i) {
      score_terms += std::fabs(c.scale * head.q.at(query, i) * head.k.at(key, i));
    }
    for (std::int64_t i = 0; i < c.value_dim; ++i) {
      value_terms += std::fabs(head.d_o.at(query, i) * head.v.at(key, i));
    }
    const double lse = head.lse.at(query, 0);
    const double delta = head.delta.at(query, 0);
    const double weight =
        std::exp(c.scale * Head::dot(head.q, query, head.k, key, c.head_dim) - lse);
    const double score =
        weight * c.scale * (Head::dot(head.d_o, query, head.v, key, c.value_dim) - delta);
    const auto count = static_cast<double>(c.queries + c.keys);
    const double weight_error =
        u * (static_cast<double>(c.head_dim + 4) * score_terms + 2 * std::fabs(lse) + 8 + count);
    const double score_error = weight * c.scale * (value_terms + std::fabs(delta)) *
                               (weight_error + u * static_cast<double>(c.value_dim + 8));
    for (std::int64_t i = 0; i < c.head_dim; ++i) {
      const double q = head.q.at(query, i);
      const double k = head.k.at(key, i);
      dq.add(query, i, score * k, score_error * std::fabs(k));
      dk.add(key, i, score * q, score_error * std::fabs(q));
    }
    for (std::int64_t i = 0; i < c.value_dim; ++i) {
      const double d_o = head.d_o.at(query, i);
      dv.add(key, i, weight * d_o, weight * weight_error * std::fabs(d_o));
    }
  }

  Sum dq, dk, dv;
};

void compare(const char* name, const Matrix& got, const Sum& wanted, double before) {
  for (std::size_t i = 0; i < wanted.value.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) / wanted.width;
    const auto column = static_cast<std::int64_t>(i) % wanted.width;
    const double expected = wanted.value[i] + before;
    const double room = wanted.size[i] + 1e-6 * before;
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(got.at(row, column))) << name << " " << row << " " << column;
    } else {
      EXPECT_NEAR(got.at(row, column), expected, room) << name << " " << row << " " << column;
    }
    if (testing::Test::HasFailure()) return;
  }
}

void check(const Case& c) {
  SCOPED_TRACE(describe(c));
  Head head(c);
  const Textbook wanted(head);
  head.run(false);
  compare("dq", head.dq, wanted.dq, 0);
  compare("dk", head.dk, wanted.dk, 0);
  compare("dv", head.dv, wanted.dv, 0);
}

TEST(AttentionBackward, matches_the_textbook_in_every_type_and_layout) {
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16, DType::F64}) {
    for (const bool transposed : {false, true}) {
      check({.dtype = dtype, .queries = 1, .keys = 1, .head_dim = 1, .value_dim = 1});
      check({.dtype = dtype,
             .queries = 7,
             .keys = 33,
             .head_dim = 5,
             .value_dim = 9,
             .transposed = transposed,
             .gap = 3});
      check({.dtype = dtype,
             .queries = 19,
             .keys = 19,
             .head_dim = 16,
             .value_dim = 8,
             .transposed = transposed,
             .masked = true});
    }
  }
}

TEST(AttentionBackward, crosses_the_borders_of_its_blocks) {
  check({.queries = 130, .keys = 515, .head_dim = 8, .value_dim = 6, .gap = 1});
  check({.queries = 300,
         .keys = 600,
         .head_dim = 4,
         .value_dim = 4,
         .masked = true,
         .diagonal = 300});
  for (const std::int64_t low : {-40, 250}) {
    for (const std::int64_t prefix : {0, 3, 520}) {
      check({.queries = 150,
             .keys = 600,
             .head_dim = 4,
             .value_dim = 4,
             .masked = true,
             .diagonal = 260,
             .low = low,
             .prefix = prefix});
    }
  }
  check({.dtype = DType::BF16,
         .queries = 257,
         .keys = 40,
         .head_dim = 8,
         .value_dim = 8,
         .masked = true,
         .diagonal = -100});
}

TEST(AttentionBackward, leaves_out_rows_that_see_nothing) {
  check({.queries = 20, .keys = 9, .head_dim = 4, .value_dim = 4, .masked = true, .diagonal = -11});
  Head head({.queries = 4, .keys = 3, .head_dim = 2, .value_dim = 2});
  head.lse.set(2, 0, kNothing);  // every score was -inf
  const Textbook wanted(head);
  head.run(false);
  compare("dq", head.dq, wanted.dq, 0);
  compare("dv", head.dv, wanted.dv, 0);
  EXPECT_EQ(head.dq.at(2, 0), 0);
}

TEST(AttentionBackward, adds_to_what_is_there) {
  Head head(
      {.queries = 12, .keys = 30, .head_dim = 6, .value_dim = 5, .masked = true, .diagonal = -3});
  for (Matrix* sum : {&head.dq, &head.dk, &head.dv}) {
    const std::int64_t rows = sum == &head.dq ? 12 : 30;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t i = 0; i < (sum == &head.dv ? 5 : 6); ++i) sum->set(row, i, 2);
    }
  }
  const Textbook wanted(head);
  head.run(true);
  compare("dq", head.dq, wanted.dq, 2);
  compare("dk", head.dk, wanted.dk, 2);
  compare("dv", head.dv, wanted.dv, 2);
}

TEST(AttentionBackward, keeps_nan_between_those_that_see_each_other) {
  for (int place = 0; place < 4; ++place) {
    SCOPED_TRACE(place);
    Head head({.queries = 12, .keys = 12, .head_dim = 4, .value_dim = 4, .masked = true});
    Matrix* const operands[] = {&head.q, &head.k, &head.v, &head.d_o};
    operands[place]->set(7, 1, std::nan(""));
    const Textbook wanted(head);
    head.run(false);
    compare("dq", head.dq, wanted.dq, 0);
    compare("dk", head.dk, wanted.dk, 0);
    compare("dv", head.dv, wanted.dv, 0);
  }
}

TEST(RowDot, multiplies_rows_of_any_stride_and_rounds_once) {
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16, DType::F64}) {
    const Matrix a(dtype, 5, 37, false, 2, 1);
    const Matrix b(dtype, 5, 37, true, 1, 2);
    Matrix c(DType::F32, 5, 1, false, 3, 3);
    multiply_rows({.rows = 5,
                   .length = 37,
                   .dtype = dtype,
                   .a = {a.view().data, a.view().row_stride, a.view().column_stride},
                   .b = {b.view().data, b.view().row_stride, b.view().column_stride},
                   .c = c.data(),
                   .c_dtype = DType::F32,
                   .c_stride = c.row_stride()});
    for (std::int64_t row = 0; row < 5; ++row) {
      EXPECT_NEAR(c.at(row, 0), Head::dot(a, row, b, row, 37), 40 * 37 * 6e-8) << print(dtype);
    }
  }
}

}  // namespace attention_backward_test
}  // namespace harpe
