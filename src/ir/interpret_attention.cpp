#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "ir/interpret_attention_axes.h"
#include "ir/interpret_leaves.h"
#include "ir/interpret_masks.h"
#include "ir/interpret_math.h"
#include "ir/interpret_rows.h"
#include "ir/interpret_sizes.h"

namespace harpe {
namespace {

constexpr std::int64_t kKeys = 256;            // keys gathered at a time
constexpr std::int64_t kRows = 64;             // rows of a block, or fewer if
constexpr std::int64_t kScores = 1024 * 1024;  // their scores would exceed this

// row = softmax(row); returns the logarithm of its sum. A row of only -inf becomes 0.
double softmax(double* row, std::int64_t n) {
  double most = kNoWeight;
  for (std::int64_t i = 0; i < n; ++i) most = std::max(most, row[i]);  // ignores NaN
  const double shift = most == kNoWeight ? 0.0 : most;
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += row[i] = std::exp(row[i] - shift);
  if (sum == 0) return kNoWeight;
  for (std::int64_t i = 0; i < n; ++i) row[i] /= sum;
  return shift + std::log(sum);
}

using KeyRuns = std::vector<KeyRun>;

class Attention {
 public:
  Attention(const LeafCall& call, const AttentionAxes& shape, const MaskData& data)
      : call_(call),
        shape_(shape),
        data_(data),
        keys_(points_in(shape.key)),
        dim_(points_in(shape.head_dim)),
        value_dim_(points_in(shape.value_dim)),
        q_(call.operands[0], shape.batch, shape.query, shape.head_dim),
        k_(call.operands[1], shape.batch, shape.key, shape.head_dim),
        v_(call.operands[2], shape.batch, shape.key, shape.value_dim),
        o_(call.targets[0], shape.batch, shape.query, shape.value_dim),
        l_(call.targets[1], shape.batch, shape.query, {}),
        value_sizes_(v_.batch.size() * v_.rows.size()) {
    call.workers.for_each(std::ssize(value_sizes_), [&](int, std::int64_t item) {
      value_sizes_[index(item)] =
          measure_row(call_.operands[2], v_.at(item / keys_, item % keys_), v_.columns).size;
    });
  }

  [[nodiscard]] std::int64_t rows_at_once() const {
    return std::clamp<std::int64_t>(kScores / keys_, 1, kRows);
  }
  // The memory of one worker's panels.
  [[nodiscard]] std::size_t room() const {
    return static_cast<std::size_t>(rows_at_once() * (dim_ + keys_ + value_dim_) +
                                    kKeys * std::max(dim_, value_dim_));
  }

  void compute(const RowBlock& block, double* room) const {
    const std::int64_t rows = std::ssize(block.rows);
    const Panel q{room, dim_};
    const Panel scores{q.data + rows * dim_, keys_};
    const Panel o{scores.data + rows * keys_, value_dim_};
    double* const gathered = o.data + rows * value_dim_;
    std::vector<std::int64_t> places;
    for (const std::int64_t row : block.rows) places.push_back(q_.rows[index(row)]);
    gather({.tensor = call_.operands[0].tensor,
            .base = q_.batch[index(block.batch)],
            .rows = places,
            .columns = q_.columns},
           q.data, q.stride);
    const std::vector<KeyRuns> seen = seen_by(block);
    fill_scores(block, seen, q, gathered, scores);
    std::vector<double> logarithms;
    for (std::int64_t i = 0; i < rows; ++i) {
      logarithms.push_back(weigh(seen[index(i)], scores.data + i * keys_));
    }
    const std::vector<Squares> squares = add_values(block, seen, scores, gathered, o);
    for (std::int64_t i = 0; i < rows; ++i) {
      write(block.batch, block.rows[index(i)],
            {.o = o.data + i * value_dim_,
             .logarithm = logarithms[index(i)],
             .scale = squares[index(i)].root()});
    }
  }

  // For o and l: the rows (all dimensions but the last) with an element in the blocks.
  [[nodiscard]] ComputedRows rows_written(const std::vector<RowBlock>& blocks) const {
    ComputedRows rows(2);
    for (const RowBlock& block : blocks) {
      for (const std::int64_t row : block.rows) {
        rows[0].push_back(o_.at(block.batch, row) / call_.targets[0].tensor->shape.back());
        rows[1].push_back(l_.at(block.batch, row) / call_.targets[1].tensor->shape.back());
      }
    }
    for (std::vector<std::int64_t>& target : rows) target = ascending(std::move(target));
    return rows;
  }

 private:
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  static std::span<const std::int64_t> slice(const std::vector<std::int64_t>& values,
                                             std::int64_t first, std::int64_t count) {
    return std::span(values).subspan(index(first), index(count));
  }

  // Per row of the block.
  [[nodiscard]] std::vector<KeyRuns> seen_by(const RowBlock& block) const {
    std::vector<KeyRuns> seen;
    for (const std::int64_t row : block.rows) {
      seen.push_back(data_.shown_of(shape_.seen_by(row, keys_), block.batch, row));
    }
    return seen;
  }

  // Turns the scores that a query sees into weights; returns the logarithm of their sum.
  static double weigh(const KeyRuns& runs, double* scores) {
    if (runs.empty()) return kNoWeight;
    for (std::size_t i = 1; i < runs.size(); ++i) {
      std::fill(scores + runs[i - 1].end, scores + runs[i].begin, kNoWeight);
    }
    return softmax(scores + runs.front().begin, runs.back().end - runs.front().begin);
  }

  // A run that contains all keys that any of these rows sees.
  [[nodiscard]] KeyRun seen_by_any(const std::vector<KeyRuns>& seen) const {
    KeyRun all{keys_, 0};
    for (const KeyRuns& runs : seen) {
      for (const KeyRun& run : runs) {
        all.begin = std::min(all.begin, run.begin);
        all.end = std::max(all.end, run.end);
      }
    }
    return all;
  }

  // scores = scale * q k^T for every key that some row sees.
  void fill_scores(const RowBlock& block, const std::vector<KeyRuns>& seen_runs, const Panel& q,
                   double* gathered, const Panel& scores) const {
    const std::int64_t rows = std::ssize(block.rows);
    const KeyRun seen = seen_by_any(seen_runs);
    std::fill_n(scores.data, rows * keys_, 0.0);
    for (std::int64_t key = seen.begin; key < seen.end; key += kKeys) {
      const std::int64_t count = std::min(kKeys, seen.end - key);
      const Panel transposed{gathered, count};
      gather({.tensor = call_.operands[1].tensor,
              .base = k_.batch[index(block.batch)],
              .rows = k_.columns,
              .columns = slice(k_.rows, key, count)},
             transposed.data, transposed.stride);
      multiply_add(q, transposed, {scores.data + key, keys_}, rows, count, dim_);
    }
    for (std::int64_t i = 0; i < rows * keys_; ++i) scores.data[i] *= shape_.scale;
  }

  // o = probabilities times v. Returns per row the squares of p |v|, where |v| is the size of the
  // key's values. If some row does not see a key, rows are summed one by one, because a probability
  // of 0 would propagate a NaN.
  std::vector<Squares> add_values(const RowBlock& block, const std::vector<KeyRuns>& seen_runs,
                                  const Panel& scores, double* gathered, const Panel& o) const {
    const std::int64_t rows = std::ssize(block.rows);
    std::vector<Squares> squares(index(rows));
    const KeyRun seen = seen_by_any(seen_runs);
    std::fill_n(o.data, rows * value_dim_, 0.0);
    for (std::int64_t key = seen.begin / kKeys * kKeys; key < seen.end; key += kKeys) {
      const std::int64_t count = std::min(kKeys, keys_ - key);
      const Panel v{gathered, value_dim_};
      gather({.tensor = call_.operands[2].tensor,
              .base = v_.batch[index(block.batch)],
              .rows = slice(v_.rows, key, count),
              .columns = v_.columns},
             v.data, v.stride);
      const double* const sizes = value_sizes_.data() + block.batch * keys_ + key;
      for (std::int64_t i = 0; i < rows; ++i) {
        const double* const weights = scores.data + i * keys_ + key;
        for (const KeyRun& run : seen_runs[index(i)]) {
          const KeyRun part{std::max(run.begin - key, std::int64_t{0}),
                            std::min(run.end - key, count)};
          add_run({scores.data + i * keys_ + key, keys_}, v, {o.data + i * value_dim_, 0}, part);
          for (std::int64_t j = part.begin; j < part.end; ++j) {
            squares[index(i)].add(weights[j] * sizes[j]);
          }
        }
      }
    }
    return squares;
  }

  // Adds one row's sum over columns `run` of a tile. Cuts it at multiples of kSumUnit, as
  // multiply_add does, so the sum does not depend on what else the row sees.
  void add_run(const Panel& scores, const Panel& v, const Panel& o, KeyRun run) const {
    for (std::int64_t begin = run.begin; begin < run.end;) {
      const std::int64_t end = begin % kSumUnit == 0
                                   ? run.end
                                   : std::min(run.end, begin / kSumUnit * kSumUnit + kSumUnit);
      multiply_add({scores.data + begin, scores.stride}, {v.data + begin * value_dim_, value_dim_},
                   o, 1, value_dim_, end - begin);
      begin = end;
    }
  }

  // The result of one row.
  struct Row {
    const double* o = nullptr;
    double logarithm = 0;
    double scale = 0;  // of o
  };

  void write(std::int64_t batch, std::int64_t row, const Row& computed) const {
    const NamedTensor& o = call_.targets[0];
    const NamedTensor& l = call_.targets[1];
    for (std::int64_t i = 0; i < value_dim_; ++i) {
      const std::int64_t place = o_.at(batch, row) + o_.columns[index(i)];
      o.scales[place] = computed.scale;
      o.values[place] = computed.o[i];
    }
    const std::int64_t l_place = l_.at(batch, row);
    l.scales[l_place] = 1;  // errors of a logarithm are relative to its sum
    l.values[l_place] = computed.logarithm;
  }

  const LeafCall& call_;
  const AttentionAxes& shape_;
  const MaskData& data_;
  std::int64_t keys_;
  std::int64_t dim_;
  std::int64_t value_dim_;
  Places q_;
  Places k_;
  Places v_;
  Places o_;
  Places l_;
  std::vector<double> value_sizes_;  // [batch, key]
};

}  // namespace

Checked<ComputedRows> interpret_attention(const LeafCall& call) {
  HP_TRY(const AttentionAxes shape, attention_axes(call, {.q = call.operands[0],
                                                          .k = call.operands[1],
                                                          .v = call.operands[2],
                                                          .o = call.targets[0]}));
  HP_REQUIRE_OK(check_axes(call, call.targets[1], {&shape.batch, &shape.query}));
  HP_TRY(const MaskData data, MaskData::make(call, shape, shape.batch));
  const Attention attention(call, shape, data);
  const std::int64_t batches = points_in(shape.batch);
  const std::vector<RowBlock> blocks =
      choose_rows(batches, shape.query, call.sample, attention.rows_at_once());
  std::vector<std::vector<double>> rooms(call.workers.count(),
                                         std::vector<double>(attention.room()));
  call.workers.for_each(std::ssize(blocks), [&](int worker, std::int64_t item) {
    attention.compute(blocks[static_cast<std::size_t>(item)],
                      rooms[static_cast<std::size_t>(worker)].data());
  });
  if (!is_sampled(batches, shape.query, call.sample)) return ComputedRows(2);
  return attention.rows_written(blocks);
}

}  // namespace harpe
