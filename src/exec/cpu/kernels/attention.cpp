#include "exec/cpu/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "exec/cpu/kernels/attention_blocks.h"
#include "exec/cpu/kernels/panel.h"
#include "exec/cpu/kernels/scratch.h"
#include "exec/cpu/kernels/softmax.h"
#include "support/check.h"
#include "support/multiversion.h"

namespace harpe {
namespace {

// A block of queries with the running state of its rows, relative to their maxima until `finish`.
template <class Real>
class QueryBlock {
 public:
  QueryBlock(const AttentionProblem& problem, const SeenLabels& labels, std::int64_t first,
             std::int64_t rows)
      : p_(problem),
        labels_(labels),
        first_(first),
        rows_(rows),
        q_(ready<Real>(part(problem.q, first, 0), rows, problem.head_dim, Scratch::Query,
                       problem.products)),
        max_(scratch_of<Real>(Scratch::Rows, 2 * rows)),
        sum_(max_ + rows),
        o_(scratch_of<Real>(Scratch::Output, rows * problem.value_dim)) {
    for (std::int64_t row = 0; row < rows_; ++row) begin(row);
  }

  // Adds keys [key, key + columns).
  void add_keys(std::int64_t key, std::int64_t columns);
  void finish();

 private:
  Real* o_row(std::int64_t row) {
    return static_cast<Real*>(p_.o) + (first_ + row) * p_.o_row_stride;
  }
  Real& lse(std::int64_t row) { return static_cast<Real*>(p_.lse)[(first_ + row) * p_.lse_stride]; }
  // A normalised state counts as one key with score lse and value o.
  void begin(std::int64_t row);
  void add_values(const SoftmaxTile<Real>& tile, const DenseView<Real>& v);

  const AttentionProblem& p_;
  const SeenLabels& labels_;
  std::int64_t first_;
  std::int64_t rows_;
  MatrixView q_;
  Real* max_;
  Real* sum_;
  Real* o_;
  bool empty_ = true;  // o_ has no value yet
  SeenColumns seen_;   // of the current tile
};

template <class Real>
void QueryBlock<Real>::begin(std::int64_t row) {
  max_[row] = p_.carry ? lse(row) : kNone<Real>;
  sum_[row] = max_[row] == kNone<Real> ? Real{0} : Real{1};
  if (!p_.carry) return;
  empty_ = false;
  Real* o = o_ + row * p_.value_dim;
  if (sum_[row] == 0) {
    std::fill_n(o, p_.value_dim, Real{0});
  } else {
    std::copy_n(o_row(row), p_.value_dim, o);
  }
}

template <class Real>
void QueryBlock<Real>::add_keys(std::int64_t key, std::int64_t columns) {
  seen_.set(seen_from(p_.visible, first_, key), labels_.from(first_, key), rows_, columns);
  if (seen_.none()) return;
  const std::int64_t padding = softmax_padding<Real>;
  const std::int64_t stride = (columns + padding - 1) / padding * padding;
  Real* scores = scratch_of<Real>(Scratch::Scores, rows_ * stride);
  const MatrixView k =
      ready<Real>(part(p_.k, key, 0), columns, p_.head_dim, Scratch::Key, p_.products);
  multiply({.m = rows_,
            .n = columns,
            .k = p_.head_dim,
            .a = q_,
            .b = transposed(k),
            .c = scores,
            .c_row_stride = stride,
            .accumulate = false,
            .products = p_.products});
  const SoftmaxTile<Real> tile{.scores = scores,
                               .stride = stride,
                               .rows = rows_,
                               .columns = columns,
                               .seen = &seen_,
                               .scale = static_cast<Real>(p_.scale),
                               .max = max_,
                               .sum = sum_,
                               .o = o_,
                               .value_dim = p_.value_dim,
                               .first = empty_};
  update_softmax(tile);
  add_values(tile, widened<Real>(part(p_.v, key, 0), columns, p_.value_dim, Scratch::Value));
  empty_ = false;
}

template <class Real>
void QueryBlock<Real>::add_values(const SoftmaxTile<Real>& tile, const DenseView<Real>& v) {
  if (tile.seen->all() || all_finite(v.data, v.stride, tile.columns, p_.value_dim)) {
    multiply({.m = rows_,
              .n = p_.value_dim,
              .k = tile.columns,
              .a = {.data = tile.scores, .dtype = kDTypeOf<Real>, .row_stride = tile.stride},
              .b = as_view(v),
              .c = o_,
              .c_row_stride = p_.value_dim,
              .accumulate = !tile.first,
              .products = p_.products});
    return;
  }
  // A probability of 0 times NaN would reach rows that do not see that key.
  for (std::int64_t row = 0; row < rows_; ++row) {
    Real* o = o_ + row * p_.value_dim;
    if (tile.first) std::fill_n(o, p_.value_dim, Real{0});
    for (const ColumnRun& run : tile.seen->of(row)) {
      for (std::int64_t key = run.begin; key < run.end; ++key) {
        const Real weight = tile.scores[row * tile.stride + key];
        const Real* value = v.data + key * v.stride;
        for (std::int64_t i = 0; i < p_.value_dim; ++i) o[i] += weight * value[i];
      }
    }
  }
}

template <class Real>
void QueryBlock<Real>::finish() {
  for (std::int64_t row = 0; row < rows_; ++row) {
    const Real* from = o_ + row * p_.value_dim;
    Real* to = o_row(row);
    if (sum_[row] == 0) {  // every score was -inf
      std::fill_n(to, p_.value_dim, Real{0});
      lse(row) = kNone<Real>;
      continue;
    }
    const Real inverse = 1 / sum_[row];
    for (std::int64_t i = 0; i < p_.value_dim; ++i) to[i] = from[i] * inverse;
    lse(row) = static_cast<Real>(static_cast<double>(max_[row]) +
                                 std::log(static_cast<double>(sum_[row])));
  }
}

template <class Real>
void attend_as(const AttentionProblem& p) {
  const SeenLabels labels = make_labels(p.tables, p.queries, p.keys);
  for (std::int64_t query = 0; query < p.queries; query += kQueryBlock) {
    const std::int64_t rows = std::min(kQueryBlock, p.queries - query);
    const ColumnRun seen = seen_by_rows(seen_from(p.visible, query, 0), rows, p.keys);
    QueryBlock<Real> block(p, labels, query, rows);
    for (std::int64_t key = seen.begin; key < seen.end; key += kKeyBlock) {
      block.add_keys(key, std::min(kKeyBlock, seen.end - key));
    }
    block.finish();
  }
}

}  // namespace

void attend(const AttentionProblem& problem) {
  const DType dtype = problem.q.dtype;
  HP_CHECK(problem.k.dtype == dtype && problem.v.dtype == dtype, "operands of different types");
  HP_CHECK(
      dtype == DType::F64 || dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16,
      "attention on `" + std::string(print(dtype)) + "`");
  dtype == DType::F64 ? attend_as<double>(problem) : attend_as<float>(problem);
}

}  // namespace harpe
