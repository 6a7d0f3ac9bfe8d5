#include "bench/cuda/backward_reference.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace harpe::bench {
namespace {

constexpr double kRoundoff = 0x1p-8;         // of bf16
constexpr double kMatrixRoundoff = 0x1p-22;  // as in elements.cuh
constexpr double kTail = 8;

// A dot product, and the root of its squares.
struct Dot {
  double value = 0;
  double root = 0;
};

Dot dot(std::span<const float> a, std::span<const float> b) {
  double value = 0;
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double term = static_cast<double>(a[i]) * static_cast<double>(b[i]);
    value += term;
    squares += term * term;
  }
  return {value, std::sqrt(squares)};
}

std::span<const float> row_of(const std::vector<float>& rows, std::int64_t heads,
                              std::int64_t columns, std::int64_t count, const HeadRow& at) {
  const std::int64_t place = ((at.batch * count + at.row) * heads + at.head) * columns;
  return std::span(rows).subspan(static_cast<std::size_t>(place),
                                 static_cast<std::size_t>(columns));
}

// The values that a query and a key contribute.
struct Pair {
  double p = 0;
  double p_error = 0;
  double s = 0;
  double s_error = 0;
};

class Pairs {
 public:
  Pairs(const AttentionCase& what, const BackwardInputs& inputs)
      : what_(what), inputs_(inputs), band_(band_of(what)) {}

  [[nodiscard]] bool see(std::int64_t query, std::int64_t key) const {
    return band_.low <= key - query && key - query <= band_.high;
  }
  [[nodiscard]] double scale() const { return 1 / std::sqrt(static_cast<double>(what_.query_dim)); }
  [[nodiscard]] std::span<const float> q(const HeadRow& at) const {
    return of_query(inputs_.q, at);
  }
  [[nodiscard]] std::span<const float> d_o(const HeadRow& at) const {
    return of_query(inputs_.d_o, at);
  }
  [[nodiscard]] std::span<const float> k(const HeadRow& at) const { return of_key(inputs_.k, at); }
  [[nodiscard]] std::span<const float> v(const HeadRow& at) const { return of_key(inputs_.v, at); }

  [[nodiscard]] Pair of(const HeadRow& query, const HeadRow& key) const {
    const auto number =
        static_cast<std::size_t>((query.batch * what_.heads + query.head) * what_.rows + query.row);
    const double lse = inputs_.lse[number];
    const double delta = inputs_.delta[number];
    if (std::isinf(lse)) return {};
    const double sums = (static_cast<double>(what_.query_dim) / 16 + 2) * kMatrixRoundoff * kTail;
    const Dot score = dot(q(query), k(key));
    const Dot product = dot(d_o(query), v(key));
    const double exponent = score.value * scale() - lse;
    const double relative = sums * score.root * scale() + 0x1p-21 +
                            0x1p-22 * (std::abs(score.value * scale()) + std::abs(lse));
    Pair pair;
    pair.p = std::exp(exponent);
    pair.p_error = pair.p * relative;
    pair.s = pair.p * (product.value - delta);
    pair.s_error = pair.p * sums * product.root + std::abs(pair.s) * (relative + 0x1p-22);
    return pair;
  }

 private:
  [[nodiscard]] std::span<const float> of_query(const std::vector<float>& rows,
                                                const HeadRow& at) const {
    return row_of(rows, what_.heads, what_.query_dim, what_.rows, at);
  }
  [[nodiscard]] std::span<const float> of_key(const std::vector<float>& rows,
                                              const HeadRow& at) const {
    return row_of(rows, what_.kv_heads, what_.query_dim, what_.keys, at);
  }

  const AttentionCase& what_;
  const BackwardInputs& inputs_;
  SeenBand band_;
};

// Weighted sums of rows, column by column.
class Sums {
 public:
  explicit Sums(std::int64_t columns) : columns_(static_cast<std::size_t>(columns)) {}

  void add(double weight, double error, std::span<const float> row) {
    ++terms_;
    for (std::size_t i = 0; i < row.size(); ++i) {
      Column& column = columns_[i];
      const double term = weight * static_cast<double>(row[i]);
      column.value += term;
      column.size += std::abs(term);
      column.squares += term * term;
      column.drift += error * std::abs(static_cast<double>(row[i]));
    }
  }

  [[nodiscard]] BoundedRow times(double factor) const {
    BoundedRow row;
    for (const Column& column : columns_) {
      const double spread = std::min(column.size, kTail * std::sqrt(column.squares));
      const double roundings = static_cast<double>(terms_) / 16 + 4;
      const double error = column.drift + spread * (kRoundoff + roundings * kMatrixRoundoff);
      row.push_back(
          {factor * column.value, factor * (error + std::abs(column.value) * 0x1p-22) + 0x1p-30});
    }
    return row;
  }

 private:
  struct Column {
    double value = 0;
    double size = 0;
    double squares = 0;
    double drift = 0;
  };
  std::vector<Column> columns_;
  std::int64_t terms_ = 0;
};

}  // namespace

SeenBand band_of(const AttentionCase& what) {
  const bool bounded = what.causal || what.window > 0;
  return {.low = what.window > 0 ? what.first_position - what.window + 1 : -what.rows,
          .high = bounded ? what.first_position : what.keys};
}

BoundedRow query_gradient(const AttentionCase& what, const BackwardInputs& inputs,
                          const HeadRow& at) {
  const Pairs pairs(what, inputs);
  Sums sums(what.query_dim);
  HeadRow key{.batch = at.batch, .head = at.head / (what.heads / what.kv_heads), .row = 0};
  for (; key.row < what.keys; ++key.row) {
    if (!pairs.see(at.row, key.row)) continue;
    const Pair pair = pairs.of(at, key);
    sums.add(pair.s, pair.s_error, pairs.k(key));
  }
  return sums.times(pairs.scale());
}

KeyGradients key_gradients(const AttentionCase& what, const BackwardInputs& inputs,
                           const HeadRow& at) {
  const Pairs pairs(what, inputs);
  Sums keys(what.query_dim);
  Sums values(what.query_dim);
  const std::int64_t group = what.heads / what.kv_heads;
  for (std::int64_t head = at.head * group; head < (at.head + 1) * group; ++head) {
    HeadRow query{.batch = at.batch, .head = head, .row = 0};
    for (; query.row < what.rows; ++query.row) {
      if (!pairs.see(query.row, at.row)) continue;
      const Pair pair = pairs.of(query, at);
      keys.add(pair.s, pair.s_error, pairs.q(query));
      values.add(pair.p, pair.p_error, pairs.d_o(query));
    }
  }
  return {.dk = keys.times(pairs.scale()), .dv = values.times(1)};
}

}  // namespace harpe::bench
