#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "ir/interpret_leaves.h"
#include "ir/interpret_math.h"
#include "ir/interpret_rows.h"

namespace harpe {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();
constexpr std::int64_t kKeys = 256;            // keys gathered at a time
constexpr std::int64_t kRows = 64;             // rows of a block, fewer when
constexpr std::int64_t kScores = 1024 * 1024;  // their scores would be more than this

// The parts that axes play, and the extents.
struct Shape {
  AxisList batch;  // of o, but query and value: batch entries and heads
  AxisList query;
  AxisList key;
  AxisList head_dim;
  AxisList value_dim;
  double scale = 1;
  bool masked = false;
  std::int64_t diagonal = 0;  // own key of query q: q + diagonal
  std::int64_t window = 0;    // keys seen up to and with the own one; 0: all
  std::int64_t prefix = 0;    // keys that everyone sees
};

// Keys [begin, end).
struct KeyRun {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

bool holds(const AxisList& axes, const std::string& name) {
  return std::ranges::find(axes, name, &NamedTensor::Axis::name) != axes.end();
}

double scale_of(const LeafCall& call, std::int64_t head_dim) {
  for (const auto& [name, value] : call.stmt->attrs) {
    if (name != "scale") continue;
    if (const auto* real = std::get_if<double>(&value)) return *real;
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  }
  return 1.0 / std::sqrt(static_cast<double>(head_dim));
}

// Every axis of `tensor` is one of those named, with the same extent.
Checked<Ok> check_axes(const LeafCall& call, const NamedTensor& tensor,
                       const std::vector<const AxisList*>& parts) {
  for (const NamedTensor::Axis& axis : tensor.axes()) {
    const auto fits = [&](const AxisList* part) {
      const auto same = std::ranges::find(*part, axis.name, &NamedTensor::Axis::name);
      return same != part->end() && same->size == axis.size;
    };
    if (std::ranges::none_of(parts, fits)) {
      return misfit(call, tensor, "axis `" + axis.name + "` plays no part there");
    }
  }
  return Ok{};
}

Checked<Ok> read_masks(const LeafCall& call, Shape& shape) {
  const std::int64_t offset = points_in(shape.key) - points_in(shape.query);
  for (const Mask& mask : call.stmt->masks) {
    const auto is = [&](std::size_t i, const AxisList& axes) {
      const auto* name =
          i < mask.call.args.size() ? std::get_if<Name>(&mask.call.args[i]) : nullptr;
      return name != nullptr && holds(axes, name->text);
    };
    const std::string& kind = mask.call.function;
    if (!is(0, shape.query) || !is(1, shape.key)) {
      return misfit(call, call.operands[0],
                    "mask `" + kind + "` is not between its queries and its keys");
    }
    shape.masked = true;
    shape.diagonal = offset;
    if (kind == "causal") continue;
    const std::int64_t keys = std::get<std::int64_t>(mask.call.args.at(2));
    if (kind == "window") shape.window = shape.window == 0 ? keys : std::min(shape.window, keys);
    if (kind == "prefix") shape.prefix = std::max(shape.prefix, keys);
  }
  return Ok{};
}

Checked<Shape> shape_of(const LeafCall& call) {
  const NamedTensor& q = call.operands[0];
  const NamedTensor& k = call.operands[1];
  const NamedTensor& v = call.operands[2];
  const NamedTensor& o = call.targets[0];
  const NamedTensor& l = call.targets[1];
  for (const NamedTensor* tensor : {&q, &k, &v, &o}) {
    if (tensor->dims.size() != 4) {
      return misfit(call, *tensor,
                    "it has " + std::to_string(tensor->dims.size()) +
                        " dimensions, not batch, position, heads and features");
    }
  }
  Shape shape{.batch = {},
              .query = q.dims[1],
              .key = k.dims[1],
              .head_dim = q.dims[3],
              .value_dim = v.dims[3]};
  for (const NamedTensor::Axis& axis : o.axes()) {
    if (!holds(shape.query, axis.name) && !holds(shape.value_dim, axis.name)) {
      shape.batch.push_back(axis);
    }
  }
  HP_REQUIRE_OK(check_axes(call, q, {&shape.batch, &shape.query, &shape.head_dim}));
  HP_REQUIRE_OK(check_axes(call, k, {&shape.batch, &shape.key, &shape.head_dim}));
  HP_REQUIRE_OK(check_axes(call, v, {&shape.batch, &shape.key, &shape.value_dim}));
  HP_REQUIRE_OK(check_axes(call, o, {&shape.batch, &shape.query, &shape.value_dim}));
  HP_REQUIRE_OK(check_axes(call, l, {&shape.batch, &shape.query}));
  HP_REQUIRE_OK(read_masks(call, shape));
  shape.scale = scale_of(call, points_in(shape.head_dim));
  return shape;
}

// Where the points of one tensor's matrix lie, by batch entry, row and column.
struct Places {
  std::vector<std::int64_t> batch;
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> columns;
  Places(const NamedTensor& tensor, const AxisList& batch_axes, const AxisList& row_axes,
         const AxisList& column_axes)
      : batch(offsets_in(tensor, batch_axes)),
        rows(offsets_in(tensor, row_axes)),
        columns(offsets_in(tensor, column_axes)) {}
};

// row = softmax(row); the logarithm of its sum. A row of nothing but -inf becomes 0.
double softmax(double* row, std::int64_t n) {
  double most = kNone;
  for (std::int64_t i = 0; i < n; ++i) most = std::max(most, row[i]);  // passes over NaN
  const double shift = most == kNone ? 0.0 : most;
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += row[i] = std::exp(row[i] - shift);
  if (sum == 0) return kNone;
  for (std::int64_t i = 0; i < n; ++i) row[i] /= sum;
  return shift + std::log(sum);
}

class Attention {
 public:
  Attention(const LeafCall& call, const Shape& shape)
      : call_(call),
        shape_(shape),
        keys_(points_in(shape.key)),
        dim_(points_in(shape.head_dim)),
        value_dim_(points_in(shape.value_dim)),
        q_(call.operands[0], shape.batch, shape.query, shape.head_dim),
        k_(call.operands[1], shape.batch, shape.key, shape.head_dim),
        v_(call.operands[2], shape.batch, shape.key, shape.value_dim),
        o_(call.targets[0], shape.batch, shape.query, shape.value_dim),
        l_(call.targets[1], shape.batch, shape.query, {}) {}

  [[nodiscard]] std::int64_t rows_at_once() const {
    return std::clamp<std::int64_t>(kScores / keys_, 1, kRows);
  }
  // Room for the panels of one worker.
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
    fill_scores(block, q, gathered, scores);
    std::vector<double> logarithms;
    for (std::int64_t i = 0; i < rows; ++i) {
      logarithms.push_back(weigh(block.rows[index(i)], scores.data + i * keys_));
    }
    add_values(block, scores, gathered, o);
    for (std::int64_t i = 0; i < rows; ++i) {
      write(block.batch, block.rows[index(i)], o.data + i * value_dim_, logarithms[index(i)]);
    }
  }

  // Of o and l: rows (all their dimensions but the last) that hold an element of the blocks.
  [[nodiscard]] ComputedRows rows_written(const std::vector<RowBlock>& blocks) const {
    ComputedRows rows(2);
    for (const RowBlock& block : blocks) {
      for (const std::int64_t row : block.rows) {
        rows[0].push_back(place(o_, block.batch, row) / call_.targets[0].tensor->shape.back());
        rows[1].push_back(place(l_, block.batch, row) / call_.targets[1].tensor->shape.back());
      }
    }
    for (std::vector<std::int64_t>& target : rows) target = ascending(std::move(target));
    return rows;
  }

 private:
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  static std::int64_t place(const Places& places, std::int64_t batch, std::int64_t row) {
    return places.batch[index(batch)] + places.rows[index(row)];
  }
  static std::span<const std::int64_t> slice(const std::vector<std::int64_t>& values,
                                             std::int64_t first, std::int64_t count) {
    return std::span(values).subspan(index(first), index(count));
  }

  // What a query sees: at most two runs, ascending and apart.
  [[nodiscard]] std::vector<KeyRun> seen_by(std::int64_t query) const {
    if (!shape_.masked) return {{0, keys_}};
    const auto clamped = [&](std::int64_t key) { return std::clamp<std::int64_t>(key, 0, keys_); };
    const std::int64_t own = query + shape_.diagonal;
    const KeyRun shown{0, clamped(shape_.prefix)};
    const KeyRun band{shape_.window == 0 ? 0 : clamped(own - shape_.window + 1), clamped(own + 1)};
    std::vector<KeyRun> runs;
    if (shown.begin < shown.end) runs.push_back(shown);
    if (band.begin >= band.end) return runs;
    if (!runs.empty() && band.begin <= runs.back().end) {
      runs.back().end = std::max(runs.back().end, band.end);
    } else {
      runs.push_back(band);
    }
    return runs;
  }

  // Turns the scores of what the query sees into weights; the logarithm of their sum.
  double weigh(std::int64_t query, double* scores) const {
    const std::vector<KeyRun> runs = seen_by(query);
    if (runs.empty()) return kNone;
    for (std::size_t i = 1; i < runs.size(); ++i) {
      std::fill(scores + runs[i - 1].end, scores + runs[i].begin, kNone);
    }
    return softmax(scores + runs.front().begin, runs.back().end - runs.front().begin);
  }

  // All the keys that any of these rows may see lie in it.
  [[nodiscard]] KeyRun seen_by_any(const RowBlock& block) const {
    KeyRun all{keys_, 0};
    for (const std::int64_t row : block.rows) {
      for (const KeyRun& run : seen_by(row)) {
        all.begin = std::min(all.begin, run.begin);
        all.end = std::max(all.end, run.end);
      }
    }
    return all;
  }

  // scores = scale * q k^T, wherever some row sees the key.
  void fill_scores(const RowBlock& block, const Panel& q, double* gathered,
                   const Panel& scores) const {
    const std::int64_t rows = std::ssize(block.rows);
    const KeyRun seen = seen_by_any(block);
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

  // o = probabilities times v. Where some row does not see a key, rows are summed one by one: a
  // probability of 0 would let a NaN through.
  void add_values(const RowBlock& block, const Panel& scores, double* gathered,
                  const Panel& o) const {
    const std::int64_t rows = std::ssize(block.rows);
    const KeyRun seen = seen_by_any(block);
    std::fill_n(o.data, rows * value_dim_, 0.0);
    for (std::int64_t key = seen.begin / kKeys * kKeys; key < seen.end; key += kKeys) {
      const std::int64_t count = std::min(kKeys, keys_ - key);
      const Panel v{gathered, value_dim_};
      gather({.tensor = call_.operands[2].tensor,
              .base = v_.batch[index(block.batch)],
              .rows = slice(v_.rows, key, count),
              .columns = v_.columns},
             v.data, v.stride);
      for (std::int64_t i = 0; i < rows; ++i) {
        for (const KeyRun& run : seen_by(block.rows[index(i)])) {
          add_run({scores.data + i * keys_ + key, keys_}, v, {o.data + i * value_dim_, 0},
                  {std::max(run.begin - key, std::int64_t{0}), std::min(run.end - key, count)});
        }
      }
    }
  }

  // One row's sum over columns `run` of a tile, cut where multiply_add would sum them by the unit:
  // so it does not depend on where the row sees more.
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

  void write(std::int64_t batch, std::int64_t row, const double* o, double logarithm) const {
    double& l = call_.targets[1].values[place(l_, batch, row)];
    double* const out = call_.targets[0].values + place(o_, batch, row);
    // Shares of what was there and of what comes, by their sums' logarithms.
    double before = 0;
    double share = 1;
    if (call_.accumulate && l != kNone) {
      const double most = std::max(l, logarithm);
      const double both = most + std::log(std::exp(l - most) + std::exp(logarithm - most));
      before = std::exp(l - both);
      share = std::exp(logarithm - both);
      logarithm = both;
    }
    for (std::int64_t i = 0; i < value_dim_; ++i) {
      double& element = out[o_.columns[index(i)]];
      element = before == 0 ? o[i] : element * before + o[i] * share;
    }
    l = logarithm;
  }

  const LeafCall& call_;
  const Shape& shape_;
  std::int64_t keys_;
  std::int64_t dim_;
  std::int64_t value_dim_;
  Places q_;
  Places k_;
  Places v_;
  Places o_;
  Places l_;
};

}  // namespace

Checked<ComputedRows> interpret_attention(const LeafCall& call) {
  HP_TRY(const Shape shape, shape_of(call));
  const Attention attention(call, shape);
  const std::int64_t batches = points_in(shape.batch);
  const std::vector<RowBlock> blocks =
      choose_rows(batches, shape.query, call.sample, attention.rows_at_once());
  std::vector<std::vector<double>> rooms(static_cast<std::size_t>(std::max(call.threads, 1)),
                                         std::vector<double>(attention.room()));
  parallel_for(call.threads, std::ssize(blocks), [&](int worker, std::int64_t item) {
    attention.compute(blocks[static_cast<std::size_t>(item)],
                      rooms[static_cast<std::size_t>(worker)].data());
  });
  if (!is_sampled(batches, shape.query, call.sample)) return ComputedRows(2);
  return attention.rows_written(blocks);
}

}  // namespace harpe
