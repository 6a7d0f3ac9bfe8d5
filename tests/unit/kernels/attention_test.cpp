#include "exec/cpu/kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "exec/cpu/kernels/elementwise.h"
#include "tests/unit/kernels/matrices.h"

namespace harpe {
namespace attention_test {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Case {
  DType dtype = DType::F32;
  std::int64_t queries = 1, keys = 1, head_dim = 1, value_dim = 1;
  bool transposed = false;  // k and v
  std::int64_t gap = 0;
  double scale = 0.3;
  bool masked = false;
  std::int64_t diagonal = 0;
  std::int64_t low = -Visibility::kUnbounded;
  std::int64_t prefix = 0;
  std::uint64_t seed = 1;
};

std::string describe(const Case& c) {
  std::string out{print(c.dtype)};
  for (const std::int64_t extent : {c.queries, c.keys, c.head_dim, c.value_dim}) {
    out += " " + std::to_string(extent);
  }
  return out + (c.transposed ? " transposed" : "") + " gap " + std::to_string(c.gap) + " scale " +
         std::to_string(c.scale) +
         (c.masked ? " differences " + std::to_string(c.low) + " to " + std::to_string(c.diagonal) +
                         " prefix " + std::to_string(c.prefix)
                   : std::string()) +
         " seed " + std::to_string(c.seed);
}

// Operands and state of one head.
struct Head {
  explicit Head(const Case& c)
      : shape(c),
        q(c.dtype, c.queries, c.head_dim, false, c.gap, c.seed),
        k(c.dtype, c.keys, c.head_dim, c.transposed, c.gap, c.seed + 1),
        v(c.dtype, c.keys, c.value_dim, c.transposed, c.gap, c.seed + 2),
        o(state_dtype(c.dtype), c.queries, c.value_dim, false, c.gap, c.seed + 3),
        lse(state_dtype(c.dtype), c.queries, 1, false, c.gap, c.seed + 4) {}

  [[nodiscard]] AttentionProblem problem() {
    return {.queries = shape.queries,
            .keys = shape.keys,
            .head_dim = shape.head_dim,
            .value_dim = shape.value_dim,
            .q = q.view(),
            .k = k.view(),
            .v = v.view(),
            .o = o.data(),
            .o_row_stride = o.row_stride(),
            .lse = lse.data(),
            .lse_stride = lse.row_stride(),
            .scale = shape.scale,
            .carry = false,
            .visible =
                shape.masked
                    ? Visibility{.low = shape.low, .high = shape.diagonal, .prefix = shape.prefix}
                    : Visibility()};
  }
  // Only keys [first, first + count), with the mask shifted accordingly.
  [[nodiscard]] AttentionProblem keys_only(std::int64_t first, std::int64_t count) {
    AttentionProblem p = problem();
    p.keys = count;
    const auto moved = [&](MatrixView view) {
      view.data = static_cast<const std::byte*>(view.data) +
                  first * view.row_stride * size_in_bytes(view.dtype);
      return view;
    };
    p.k = moved(p.k);
    p.v = moved(p.v);
    p.visible = seen_from(p.visible, 0, first);
    return p;
  }
  [[nodiscard]] std::vector<std::int64_t> seen_by(std::int64_t query) const {
    std::vector<std::int64_t> keys;
    for (std::int64_t key = 0; key < shape.keys; ++key) {
      const bool in_band = shape.low <= key - query && key - query <= shape.diagonal;
      if (!shape.masked || key < shape.prefix || in_band) keys.push_back(key);
    }
    return keys;
  }

  Case shape;
  Matrix q, k, v, o, lse;
};

// One row by the textbook formula in f64, and a bound on its rounding error.
struct Row {
  std::vector<double> o;
  double lse = -kInfinity;
  double o_bound = 0;
  double lse_bound = 0;
};

Row textbook(const Head& head, std::int64_t query) {
  const Case& c = head.shape;
  Row row{.o = std::vector<double>(static_cast<std::size_t>(c.value_dim))};
  const std::vector<std::int64_t> keys = head.seen_by(query);
  if (keys.empty()) return row;
  std::vector<double> scores;
  double magnitude = 0;  // of the largest sum of a score's terms
  for (const std::int64_t key : keys) {
    double dot = 0, terms = 0;
    for (std::int64_t i = 0; i < c.head_dim; ++i) {
      dot += head.q.at(query, i) * head.k.at(key, i);
      terms += std::fabs(head.q.at(query, i) * head.k.at(key, i));
    }
    scores.push_back(c.scale * dot);
    magnitude = std::max(magnitude, std::fabs(c.scale) * terms);
  }
  const double most = *std::ranges::max_element(scores);
  double sum = 0, largest = 0;
  for (const double score : scores) sum += std::exp(score - most);
  for (std::size_t n = 0; n < keys.size(); ++n) {
    const double p = std::exp(scores[n] - most) / sum;
    for (std::int64_t i = 0; i < c.value_dim; ++i) {
      row.o[static_cast<std::size_t>(i)] += p * head.v.at(keys[n], i);
      largest = std::max(largest, std::fabs(head.v.at(keys[n], i)));
    }
  }
  row.lse = most + std::log(sum);
  // u = half a unit in the last place of the state. A score errs by at most (head_dim + 3) u times
  // the sum of its terms (dot product, rounding of scale, of the product, of the difference from
  // the maximum). With 4 u of the exponential and (keys + 8) u of sums and rescalings, these are
  // relative errors of weights whose sum is 1, in numerator and denominator alike.
  const double u = unit_roundoff(state_dtype(c.dtype));
  const double score =
      (static_cast<double>(c.head_dim) + 3) * u * magnitude + 2 * u * std::fabs(most);
  const double weight = score + (static_cast<double>(keys.size()) + 12) * u;
  row.o_bound = 2 * weight * largest;
  row.lse_bound = weight + 2 * u * std::fabs(row.lse);
  return row;
}

void expect_right(const Head& head, double factor = 1) {
  SCOPED_TRACE(describe(head.shape));
  for (std::int64_t query = 0; query < head.shape.queries; ++query) {
    const Row row = textbook(head, query);
    if (row.lse == -kInfinity) {
      ASSERT_EQ(head.lse.at(query, 0), -kInfinity) << query;
    } else {
      ASSERT_NEAR(head.lse.at(query, 0), row.lse, factor * row.lse_bound) << query;
    }
    for (std::int64_t i = 0; i < head.shape.value_dim; ++i) {
      ASSERT_NEAR(head.o.at(query, i), row.o[static_cast<std::size_t>(i)], factor * row.o_bound)
          << query << ", " << i;
    }
  }
}

void run(const Case& c) {
  Head head(c);
  attend(head.problem());
  expect_right(head);
}

Case draw(std::mt19937_64& random, DType dtype) {
  constexpr std::array<std::int64_t, 5> kSizes{1, 3, 17, 65, 129};
  constexpr std::array<std::int64_t, 4> kDiagonals{-5, 0, 7, -200};
  constexpr std::array<std::int64_t, 4> kLows{-Visibility::kUnbounded, -9, -40, 5};
  constexpr std::array<std::int64_t, 4> kPrefixes{-3, 0, 2, 70};
  const auto size = [&] { return kSizes[random() % kSizes.size()]; };
  return {.dtype = dtype,
          .queries = size(),
          .keys = size(),
          .head_dim = size(),
          .value_dim = size(),
          .transposed = random() % 2 == 0,
          .gap = static_cast<std::int64_t>(random() % 2) * 3,
          .scale = random() % 8 == 0 ? -0.4 : 0.3,
          .masked = random() % 2 == 0,
          .diagonal = kDiagonals[random() % kDiagonals.size()],
          .low = kLows[random() % kLows.size()],
          .prefix = kPrefixes[random() % kPrefixes.size()],
          .seed = random()};
}

class Attention : public testing::TestWithParam<DType> {};

TEST_P(Attention, is_within_its_bound_for_odd_shapes_strides_scales_and_masks) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 80; ++i) run(draw(random, GetParam()));
}

TEST_P(Attention, is_within_its_bound_across_blocks_of_queries_and_keys) {
  Case c{
      .dtype = GetParam(), .queries = 131, .keys = 1030, .head_dim = 9, .value_dim = 5, .gap = 1};
  run(c);
  c.masked = true;
  for (const std::int64_t diagonal : {-5, 0, 7, 505, 899, 2000}) {
    c.diagonal = diagonal;
    for (const std::int64_t keys : {1, 20, 600}) {
      c.low = diagonal - keys + 1;
      c.prefix = keys == 20 ? 515 : 0;
      run(c);
    }
    c.low = -Visibility::kUnbounded;
    run(c);
  }
}

TEST_P(Attention, stays_in_range_for_large_scores) {
  run({.dtype = GetParam(),
       .queries = 17,
       .keys = 65,
       .head_dim = 64,
       .value_dim = 8,
       .scale = 300});
}

TEST_P(Attention, of_equal_scores_is_the_mean) {
  run({.dtype = GetParam(), .queries = 3, .keys = 65, .head_dim = 5, .value_dim = 4, .scale = 0});
}

TEST_P(Attention, carried_over_parts_equals_the_whole) {
  for (const bool masked : {false, true}) {
    for (const std::int64_t diagonal : {-5, 0, 7}) {
      for (const std::int64_t cut : {1, 16, 40, 64}) {
        Head head({.dtype = GetParam(),
                   .queries = 33,
                   .keys = 65,
                   .head_dim = 17,
                   .value_dim = 19,
                   .gap = 3,
                   .masked = masked,
                   .diagonal = diagonal});
        attend(head.keys_only(0, cut));
        AttentionProblem rest = head.keys_only(cut, 65 - cut);
        rest.carry = true;
        attend(rest);
        // The state between the parts is rounded once more: o by u, lse by u |lse|. Both are far
        // below the weights' bound, so a factor of 2 covers them.
        expect_right(head, 2);
      }
    }
  }
}

TEST_P(Attention, folded_from_two_states_equals_the_whole) {
  Case c{.dtype = GetParam(),
         .queries = 33,
         .keys = 65,
         .head_dim = 17,
         .value_dim = 19,
         .masked = true};
  Head whole(c), part(c);
  attend(whole.keys_only(0, 20));
  attend(part.keys_only(20, 45));
  lse_combine(whole.o.data(), whole.o.row_stride(), whole.lse.data(), whole.lse.row_stride(),
              part.o.data(), part.o.row_stride(), part.lse.data(), part.lse.row_stride(), 33, 19,
              state_dtype(GetParam()));
  expect_right(whole, 2);
}

TEST_P(Attention, leaves_a_carried_row_that_sees_no_key_bit_by_bit) {
  Head head({.dtype = GetParam(), .queries = 17, .keys = 9, .head_dim = 3, .value_dim = 3});
  attend(head.problem());
  const HostTensor o = head.o.tensor(), lse = head.lse.tensor();
  AttentionProblem p = head.problem();
  p.carry = true;
  p.visible.high = -17;
  attend(p);
  EXPECT_TRUE(same_bits(o, head.o.tensor()));
  EXPECT_TRUE(same_bits(lse, head.lse.tensor()));
  p.visible.high = -16;  // the last query sees the first key
  attend(p);
  EXPECT_FALSE(same_bits(lse, head.lse.tensor()));
  EXPECT_EQ(load(lse, 15), load(head.lse.tensor(), 15));
  p.keys = 0;
  p.visible = {};
  const HostTensor later = head.lse.tensor();
  attend(p);
  EXPECT_TRUE(same_bits(later, head.lse.tensor()));
}

TEST_P(Attention, without_visible_keys_is_the_identity_and_touches_no_gap) {
  Head head({.dtype = GetParam(),
             .queries = 5,
             .keys = 9,
             .head_dim = 3,
             .value_dim = 3,
             .gap = 2,
             .masked = true,
             .diagonal = -5});
  attend(head.problem());
  for (std::int64_t query = 0; query < 5; ++query) {
    EXPECT_EQ(head.lse.at(query, 0), -kInfinity);
    for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(head.o.at(query, i), 0.0);
    EXPECT_TRUE(std::isnan(head.o.at(query, 3)));
  }
}

TEST_P(Attention, starts_from_a_carried_identity_whatever_its_o_holds) {
  Head head(
      {.dtype = GetParam(), .queries = 9, .keys = 17, .head_dim = 5, .value_dim = 7, .gap = 1});
  for (std::int64_t query = 0; query < 9; ++query) {
    head.lse.set(query, 0, -kInfinity);
    for (std::int64_t i = 0; i < 7; ++i) head.o.set(query, i, std::nan(""));
  }
  AttentionProblem p = head.problem();
  p.carry = true;
  attend(p);
  expect_right(head);
}

TEST_P(Attention, lets_a_nan_reach_exactly_who_sees_it) {
  for (const int where : {0, 1, 2}) {
    Head head({.dtype = GetParam(),
               .queries = 40,
               .keys = 40,
               .head_dim = 5,
               .value_dim = 3,
               .masked = true,
               .diagonal = 3});
    (where == 0 ? head.q : where == 1 ? head.k : head.v).set(20, 1, std::nan(""));
    attend(head.problem());
    for (std::int64_t query = 0; query < 40; ++query) {
      const bool sees = where == 0 ? query == 20 : query + 3 >= 20;
      for (std::int64_t i = 0; i < 3; ++i) {
        const bool reached = sees && (where != 2 || i == 1);
        ASSERT_EQ(std::isnan(head.o.at(query, i)), reached) << where << " " << query << " " << i;
      }
      ASSERT_EQ(std::isnan(head.lse.at(query, 0)), sees && where != 2) << where << " " << query;
    }
  }
}

TEST_P(Attention, keeps_a_carried_nan_in_its_row) {
  Head head({.dtype = GetParam(), .queries = 4, .keys = 7, .head_dim = 3, .value_dim = 2});
  attend(head.problem());
  head.o.set(2, 0, std::nan(""));
  head.lse.set(2, 0, std::nan(""));
  AttentionProblem p = head.problem();
  p.carry = true;
  attend(p);
  for (std::int64_t query = 0; query < 4; ++query) {
    EXPECT_EQ(std::isnan(head.o.at(query, 0)), query == 2);
    EXPECT_EQ(std::isnan(head.lse.at(query, 0)), query == 2);
  }
}

TEST_P(Attention, of_scores_that_are_all_minus_infinity_is_the_identity) {
  Head head({.dtype = GetParam(), .queries = 2, .keys = 7, .head_dim = 1, .value_dim = 2});
  for (std::int64_t key = 0; key < 7; ++key) head.k.set(key, 0, -kInfinity);
  head.q.set(0, 0, 1);
  head.q.set(1, 0, 2);
  attend(head.problem());
  EXPECT_EQ(head.lse.at(0, 0), -kInfinity);
  EXPECT_EQ(head.o.at(1, 1), 0.0);
}

TEST_P(Attention, is_bitwise_the_same_from_every_thread) {
  const Case c{.dtype = GetParam(),
               .queries = 140,
               .keys = 600,
               .head_dim = 32,
               .value_dim = 16,
               .masked = true,
               .diagonal = 460};
  std::vector<Head> heads(4, Head(c));
  {
    std::vector<std::jthread> threads;
    for (Head& head : heads) threads.emplace_back([&head] { attend(head.problem()); });
  }
  expect_right(heads[0]);
  for (const Head& head : heads) {
    EXPECT_TRUE(same_bits(head.o.tensor(), heads[0].o.tensor()));
    EXPECT_TRUE(same_bits(head.lse.tensor(), heads[0].lse.tensor()));
  }
}

INSTANTIATE_TEST_SUITE_P(AllTypes, Attention,
                         testing::Values(DType::F32, DType::F64, DType::F16, DType::BF16),
                         [](const auto& type) { return std::string(print(type.param)); });

}  // namespace attention_test
}  // namespace harpe
