#include "exec/cpu/kernels/attention_backward.h"

#include <algorithm>
#include <string>

#include "exec/cpu/kernels/attention_blocks.h"
#include "exec/cpu/kernels/softmax.h"
#include "exec/cpu/kernels/softmax_backward.h"
#include "support/check.h"

namespace harpe {
namespace {

// Rows of an operand: as given, for GEMMs of operands, and widened, for GEMMs with computed values.
template <class Real>
struct Operand {
  DenseView<Real> wide;
  MatrixView view;
};

template <class Real>
Operand<Real> operand(const MatrixView& rows, std::int64_t count, std::int64_t columns,
                      Scratch purpose, Products products) {
  const DenseView<Real> wide = widened<Real>(rows, count, columns, purpose);
  return {wide, rows.dtype == gemm_backend(rows.dtype, products).operands ? rows : as_view(wide)};
}

template <class Real>
Real load(const RowValues& values, std::int64_t row) {
  const std::int64_t at = row * values.stride;
  return values.dtype == DType::F64 ? static_cast<Real>(static_cast<const double*>(values.data)[at])
                                    : static_cast<Real>(static_cast<const float*>(values.data)[at]);
}

template <class Real>
Real* row_of(const SumMatrix& sums, std::int64_t row) {
  return static_cast<Real*>(sums.data) + row * sums.row_stride;
}

template <class Real>
void begin(const SumMatrix& sums, std::int64_t rows, std::int64_t columns) {
  if (sums.carry) return;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::fill_n(row_of<Real>(sums, row), columns, Real{0});
  }
}

// A block of queries, which visits blocks of keys one after the other.
template <class Real>
class QueryGradients {
 public:
  QueryGradients(const AttentionBackwardProblem& problem, const SeenLabels& labels,
                 std::int64_t first, std::int64_t rows)
      : p_(problem),
        labels_(labels),
        first_(first),
        rows_(rows),
        q_(operand<Real>(part(problem.q, first, 0), rows, problem.head_dim, Scratch::Query,
                         problem.products)),
        d_o_(operand<Real>(part(problem.d_o, first, 0), rows, problem.value_dim, Scratch::Output,
                           problem.products)),
        lse_(scratch_of<Real>(Scratch::Rows, 2 * rows)),
        delta_(lse_ + rows) {
    for (std::int64_t row = 0; row < rows; ++row) {
      lse_[row] = load<Real>(problem.lse, first + row);
      delta_[row] = load<Real>(problem.delta, first + row);
    }
  }

  // Adds the contributions of the pairs with keys [key, key + columns).
  void add_keys(std::int64_t key, std::int64_t columns);

 private:
  // left[rows, depth] right[columns, depth]^T
  void make_scores(const MatrixView& left, const MatrixView& right, std::int64_t depth, Real* out,
                   const BackwardTile<Real>& tile) const;
  // sums[first ..] += left (transposed: left^T) right
  void add(const MatrixView& left, std::int64_t m, std::int64_t k, const DenseView<Real>& right,
           std::int64_t n, const SumMatrix& sums, std::int64_t first) const;
  [[nodiscard]] bool hides_nan(const BackwardTile<Real>& tile, const DenseView<Real>& k) const;
  void add_pairs(const BackwardTile<Real>& tile, const DenseView<Real>& k, std::int64_t key) const;

  const AttentionBackwardProblem& p_;
  const SeenLabels& labels_;
  std::int64_t first_;
  std::int64_t rows_;
  Operand<Real> q_;
  Operand<Real> d_o_;
  Real* lse_;
  Real* delta_;
  SeenColumns seen_;  // of the current tile
};

template <class Real>
void QueryGradients<Real>::make_scores(const MatrixView& left, const MatrixView& right,
                                       std::int64_t depth, Real* out,
                                       const BackwardTile<Real>& tile) const {
  multiply({.m = tile.rows,
            .n = tile.columns,
            .k = depth,
            .a = left,
            .b = transposed(right),
            .c = out,
            .c_row_stride = tile.stride,
            .accumulate = false,
            .products = p_.products});
}

template <class Real>
void QueryGradients<Real>::add(const MatrixView& left, std::int64_t m, std::int64_t k,
                               const DenseView<Real>& right, std::int64_t n, const SumMatrix& sums,
                               std::int64_t first) const {
  multiply({.m = m,
            .n = n,
            .k = k,
            .a = left,
            .b = as_view(right),
            .c = row_of<Real>(sums, first),
            .c_row_stride = sums.row_stride,
            .accumulate = true,
            .products = p_.products});
}

// Whether a factor of 0 would meet a NaN or an infinity of another pair.
template <class Real>
bool QueryGradients<Real>::hides_nan(const BackwardTile<Real>& tile,
                                     const DenseView<Real>& k) const {
  bool hides = !tile.seen->all();
  for (std::int64_t row = 0; row < rows_; ++row) hides = hides || lse_[row] == kNone<Real>;
  return hides && !(all_finite(k.data, k.stride, tile.columns, p_.head_dim) &&
                    all_finite(q_.wide.data, q_.wide.stride, rows_, p_.head_dim) &&
                    all_finite(d_o_.wide.data, d_o_.wide.stride, rows_, p_.value_dim));
}

template <class Real>
void QueryGradients<Real>::add_pairs(const BackwardTile<Real>& tile, const DenseView<Real>& k,
                                     std::int64_t key) const {
  const auto add_row = [](Real* to, Real factor, const Real* from, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) to[i] += factor * from[i];
  };
  const ColumnRun whole{0, tile.columns};
  for (std::int64_t row = 0; row < rows_; ++row) {
    for (const ColumnRun& run : seen_runs(tile, row, whole)) {
      for (std::int64_t j = run.begin; j < run.end; ++j) {
        const Real gradient = tile.gradients[row * tile.stride + j];
        add_row(row_of<Real>(p_.dq, first_ + row), gradient, k.data + j * k.stride, p_.head_dim);
        add_row(row_of<Real>(p_.dk, key + j), gradient, q_.wide.data + row * q_.wide.stride,
                p_.head_dim);
        add_row(row_of<Real>(p_.dv, key + j), tile.weights[row * tile.stride + j],
                d_o_.wide.data + row * d_o_.wide.stride, p_.value_dim);
      }
    }
  }
}

template <class Real>
void QueryGradients<Real>::add_keys(std::int64_t key, std::int64_t columns) {
  seen_.set(seen_from(p_.visible, first_, key), labels_.from(first_, key), rows_, columns);
  if (seen_.none()) return;
  const std::int64_t padding = softmax_padding<Real>;
  const std::int64_t stride = (columns + padding - 1) / padding * padding;
  const Operand<Real> k =
      operand<Real>(part(p_.k, key, 0), columns, p_.head_dim, Scratch::Key, p_.products);
  const BackwardTile<Real> tile{.weights = scratch_of<Real>(Scratch::Scores, rows_ * stride),
                                .gradients = scratch_of<Real>(Scratch::Gradients, rows_ * stride),
                                .stride = stride,
                                .rows = rows_,
                                .columns = columns,
                                .seen = &seen_,
                                .scale = static_cast<Real>(p_.scale),
                                .lse = lse_,
                                .delta = delta_};
  make_scores(q_.view, k.view, p_.head_dim, tile.weights, tile);
  make_scores(d_o_.view,
              ready<Real>(part(p_.v, key, 0), columns, p_.value_dim, Scratch::Value, p_.products),
              p_.value_dim, tile.gradients, tile);
  differentiate_softmax(tile);
  if (hides_nan(tile, k.wide)) {
    add_pairs(tile, k.wide, key);
    return;
  }
  const MatrixView weights{.data = tile.weights, .dtype = kDTypeOf<Real>, .row_stride = stride};
  const MatrixView gradients{.data = tile.gradients, .dtype = kDTypeOf<Real>, .row_stride = stride};
  add(gradients, rows_, columns, k.wide, p_.head_dim, p_.dq, first_);
  add(transposed(gradients), columns, rows_, q_.wide, p_.head_dim, p_.dk, key);
  add(transposed(weights), columns, rows_, d_o_.wide, p_.value_dim, p_.dv, key);
}

template <class Real>
void differentiate_as(const AttentionBackwardProblem& p) {
  const SeenLabels labels = make_labels(p.tables, p.queries, p.keys);
  begin<Real>(p.dq, p.queries, p.head_dim);
  begin<Real>(p.dk, p.keys, p.head_dim);
  begin<Real>(p.dv, p.keys, p.value_dim);
  for (std::int64_t query = 0; query < p.queries; query += kQueryBlock) {
    const std::int64_t rows = std::min(kQueryBlock, p.queries - query);
    const ColumnRun seen = seen_by_rows(seen_from(p.visible, query, 0), rows, p.keys);
    if (seen.begin >= seen.end) continue;
    QueryGradients<Real> block(p, labels, query, rows);
    for (std::int64_t key = seen.begin; key < seen.end; key += kKeyBlock) {
      block.add_keys(key, std::min(kKeyBlock, seen.end - key));
    }
  }
}

}  // namespace

void differentiate_attention(const AttentionBackwardProblem& problem) {
  const DType dtype = problem.q.dtype;
  for (const MatrixView* operand : {&problem.k, &problem.v, &problem.d_o}) {
    HP_CHECK(operand->dtype == dtype, "operands of different types");
  }
  HP_CHECK(
      dtype == DType::F64 || dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16,
      "attention on `" + std::string(print(dtype)) + "`");
  dtype == DType::F64 ? differentiate_as<double>(problem) : differentiate_as<float>(problem);
}

}  // namespace harpe
