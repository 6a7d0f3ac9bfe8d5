#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "ir/interpret_attention_axes.h"
#include "ir/interpret_leaves.h"
#include "ir/interpret_masks.h"
#include "ir/interpret_math.h"
#include "ir/interpret_rows.h"
#include "ir/interpret_sizes.h"

namespace harpe {
namespace {

constexpr std::int64_t kTileRows = 64;      // rows of a target in one tile
constexpr std::int64_t kTileColumns = 256;  // columns summed in one tile

// Operands of the leaf.
constexpr std::size_t kQ = 0;
constexpr std::size_t kK = 1;
constexpr std::size_t kV = 2;
constexpr std::size_t kDo = 3;
constexpr std::size_t kLse = 4;
constexpr std::size_t kDelta = 5;
enum class Target : std::uint8_t { Dq, Dk, Dv };

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

// The axes of one target. Its rows are queries (dq) or keys (dk, dv); its terms come from the
// columns, which are the other side. Its batch entries are `kept`; it sums over `summed`.
struct Sides {
  AxisList kept;
  AxisList summed;
  AxisList rows;
  AxisList columns;
  AxisList features;
  bool by_query = true;
};

Sides sides_of(const AttentionAxes& axes, const NamedTensor& tensor, Target target) {
  Sides sides{.kept = {},
              .summed = {},
              .rows = axes.key,
              .columns = axes.query,
              .features = target == Target::Dv ? axes.value_dim : axes.head_dim,
              .by_query = target == Target::Dq};
  if (sides.by_query) std::swap(sides.rows, sides.columns);
  for (const NamedTensor::Axis& axis : axes.batch) {
    (tensor.find(axis.name) == nullptr ? sides.summed : sides.kept).push_back(axis);
  }
  return sides;
}

AxisList join(AxisList first, const AxisList& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// A worker's panels.
struct Room {
  Panel score_rows;              // rows x head_dim
  Panel value_rows;              // rows x value_dim
  Panel score_columns;           // columns x head_dim
  Panel value_columns;           // columns x value_dim
  Panel transposed;              // one of these, transposed
  Panel weights;                 // rows x columns: p
  Panel slopes;                  // rows x columns: s
  Panel sum;                     // rows x features
  Panel common;                  // rows x features: p times the right side, for dq
  std::vector<Squares> squares;  // per row: of the sizes of its terms
  std::vector<double> deltas;    // per row: the largest size of a delta
};

// The rows and columns of one batch entry in the current tile.
struct Tile {
  std::int64_t entry = 0;
  std::span<const std::int64_t> rows;
  std::vector<std::int64_t> columns;
  std::vector<std::int64_t> seen;  // per row: how many of the columns
};

// The batch entries in the order in which a target is computed.
AxisList entries_of(const AttentionAxes& axes, const NamedTensor& tensor, Target target) {
  const Sides sides = sides_of(axes, tensor, target);
  return join(sides.kept, sides.summed);
}

// The gradient of one target, row by row: p = e^(scale q k^T - l) if the row sees the column, s = p
// (do v^T - delta), then a matrix product with the right side: k, q or do.
class Backward {
 public:
  // `data` is indexed by the entries of entries_of.
  Backward(const LeafCall& call, const AttentionAxes& axes, const MaskData& data, Target target)
      : call_(call),
        axes_(axes),
        data_(data),
        target_(target),
        result_(call.targets[static_cast<std::size_t>(target)]),
        sides_(sides_of(axes, result_, target)),
        entries_(entries_of(axes, result_, target)),
        columns_(points_in(sides_.columns)),
        dim_(points_in(axes.head_dim)),
        value_dim_(points_in(axes.value_dim)),
        features_(points_in(sides_.features)),
        score_rows_(operand(sides_.by_query ? kQ : kK, sides_.rows, axes.head_dim)),
        score_columns_(operand(sides_.by_query ? kK : kQ, sides_.columns, axes.head_dim)),
        value_rows_(operand(sides_.by_query ? kDo : kV, sides_.rows, axes.value_dim)),
        value_columns_(operand(sides_.by_query ? kV : kDo, sides_.columns, axes.value_dim)),
        lse_(operand(kLse, axes.query, {})),
        delta_(operand(kDelta, axes.query, {})),
        out_(result_, sides_.kept, sides_.rows, sides_.features) {}

  // The computed rows; empty if all rows were computed.
  [[nodiscard]] std::vector<std::int64_t> run() const {
    const std::int64_t batches = points_in(sides_.kept);
    const std::vector<RowBlock> blocks = choose_rows(batches, sides_.rows, call_.sample, kTileRows);
    const std::size_t room = index((kTileRows + 2 * kTileColumns) * (dim_ + value_dim_) +
                                   2 * kTileRows * (kTileColumns + features_));
    std::vector<std::vector<double>> rooms(call_.workers.count(), std::vector<double>(room));
    call_.workers.for_each(std::ssize(blocks), [&](int worker, std::int64_t item) {
      compute(worker, blocks[index(item)], rooms[index(worker)].data());
    });
    std::vector<std::int64_t> rows;
    if (!is_sampled(batches, sides_.rows, call_.sample)) return rows;
    for (const RowBlock& block : blocks) {
      for (const std::int64_t row : block.rows) rows.push_back(row_of(block.batch, row));
    }
    return ascending(std::move(rows));
  }

 private:
  struct Matrix {
    const NamedTensor* tensor;
    Places places;

    // Per row: the root mean square size of its elements.
    [[nodiscard]] std::vector<double> sizes(std::int64_t entry,
                                            std::span<const std::int64_t> rows) const {
      std::vector<double> sizes;
      for (const std::int64_t row : rows) {
        sizes.push_back(measure_row(*tensor, places.at(entry, row), places.columns).size);
      }
      return sizes;
    }
  };

  [[nodiscard]] Matrix operand(std::size_t which, const AxisList& rows,
                               const AxisList& features) const {
    const NamedTensor& tensor = call_.operands[which];
    return {&tensor, Places(tensor, entries_, rows, features)};
  }

  [[nodiscard]] std::int64_t row_of(std::int64_t batch, std::int64_t row) const {
    return out_.at(batch, row) / result_.tensor->shape.back();
  }

  static void fetch(const Matrix& from, std::int64_t entry, std::span<const std::int64_t> rows,
                    const Panel& to) {
    std::vector<std::int64_t> places;
    for (const std::int64_t row : rows) places.push_back(from.places.rows[index(row)]);
    gather({.tensor = from.tensor->tensor,
            .base = from.places.batch[index(entry)],
            .rows = places,
            .columns = from.places.columns},
           to.data, to.stride);
  }

  static double at(const Matrix& of, std::int64_t entry, std::int64_t query) {
    return load(*of.tensor->tensor, of.places.at(entry, query));
  }

  [[nodiscard]] std::int64_t query_of(std::int64_t row, std::int64_t column) const {
    return sides_.by_query ? row : column;
  }
  [[nodiscard]] bool sees(std::int64_t entry, std::int64_t row, std::int64_t column) const {
    const std::int64_t query = query_of(row, column);
    const std::int64_t key = sides_.by_query ? column : row;
    return axes_.sees(query, key) && data_.shows(entry, query, key) &&
           at(lse_, entry, query) != kNoWeight;
  }

  [[nodiscard]] Room divide(double* memory) const {
    const auto take = [&](std::int64_t rows, std::int64_t columns) {
      const Panel panel{memory, columns};
      memory += rows * columns;
      return panel;
    };
    Room room{.score_rows = take(kTileRows, dim_),
              .value_rows = take(kTileRows, value_dim_),
              .score_columns = take(kTileColumns, dim_),
              .value_columns = take(kTileColumns, value_dim_),
              .transposed = take(dim_ + value_dim_, kTileColumns),
              .weights = take(kTileRows, kTileColumns),
              .slopes = take(kTileRows, kTileColumns),
              .sum = take(kTileRows, features_),
              .common = take(kTileRows, features_),
              .squares = std::vector<Squares>(kTileRows),
              .deltas = std::vector<double>(kTileRows, 0.0)};
    std::fill_n(room.sum.data, 2 * kTileRows * features_, 0.0);  // and room.common
    return room;
  }

  void compute(int worker, const RowBlock& block, double* memory) const {
    Room room = divide(memory);
    const std::int64_t parts = points_in(sides_.summed);
    for (std::int64_t part = 0; part < parts; ++part) {
      Tile tile{.entry = block.batch * parts + part, .rows = block.rows, .columns = {}, .seen = {}};
      fetch(score_rows_, tile.entry, tile.rows, room.score_rows);
      fetch(value_rows_, tile.entry, tile.rows, room.value_rows);
      for (std::int64_t first = 0; first < columns_; first += kTileColumns) {
        if (!call_.workers.goes_on(worker)) return;
        tile.columns.resize(index(std::min(kTileColumns, columns_ - first)));
        std::iota(tile.columns.begin(), tile.columns.end(), first);
        add(tile, room);
      }
    }
    for (std::int64_t i = 0; i < std::ssize(block.rows); ++i) {
      write(block.batch, block.rows[index(i)], i, room);
    }
  }

  void add(Tile& tile, Room& room) const {
    tile.seen.clear();
    for (const std::int64_t row : tile.rows) {
      tile.seen.push_back(std::ranges::count_if(
          tile.columns, [&](std::int64_t column) { return sees(tile.entry, row, column); }));
    }
    if (std::ranges::all_of(tile.seen, [](std::int64_t count) { return count == 0; })) return;
    fetch(score_columns_, tile.entry, tile.columns, room.score_columns);
    fetch(value_columns_, tile.entry, tile.columns, room.value_columns);
    multiply_transposed(tile, room.score_rows, room.score_columns, room.transposed, room.weights);
    multiply_transposed(tile, room.value_rows, room.value_columns, room.transposed, room.slopes);
    const Panel& right = target_ == Target::Dv ? room.value_columns : room.score_columns;
    weigh(tile, room);
    add_product(tile, target_ == Target::Dv ? room.weights : room.slopes, right, room.sum);
    if (target_ == Target::Dq) add_product(tile, room.weights, right, room.common);
  }

  // out = left right^T
  static void multiply_transposed(const Tile& tile, const Panel& left, const Panel& right,
                                  const Panel& transposed, const Panel& out) {
    const std::int64_t rows = std::ssize(tile.rows);
    const std::int64_t columns = std::ssize(tile.columns);
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t d = 0; d < right.stride; ++d) {
        transposed.data[d * transposed.stride + j] = right.data[j * right.stride + d];
      }
    }
    std::fill_n(out.data, rows * out.stride, 0.0);
    multiply_add(left, transposed, out, rows, columns, right.stride);
  }

  // (q k^T, do v^T) -> (p, s), and the sizes of the terms. An error of do v^T or of delta is as
  // large as these are, even if their difference is small.
  void weigh(const Tile& tile, Room& room) const {
    const std::vector<double> row_sizes = value_rows_.sizes(tile.entry, tile.rows);
    const std::vector<double> column_sizes = value_columns_.sizes(tile.entry, tile.columns);
    const std::vector<double> right_sizes =
        (target_ == Target::Dv ? value_columns_ : score_columns_).sizes(tile.entry, tile.columns);
    const double length = std::sqrt(static_cast<double>(value_dim_));
    for (std::size_t i = 0; i < tile.rows.size(); ++i) {
      double* weights = room.weights.data + static_cast<std::int64_t>(i) * kTileColumns;
      double* slopes = room.slopes.data + static_cast<std::int64_t>(i) * kTileColumns;
      for (std::size_t j = 0; j < tile.columns.size(); ++j) {
        if (!sees(tile.entry, tile.rows[i], tile.columns[j])) {
          weights[j] = slopes[j] = 0;
          continue;
        }
        const std::int64_t query = query_of(tile.rows[i], tile.columns[j]);
        const std::int64_t delta_place = delta_.places.at(tile.entry, query);
        const double delta = load(*delta_.tensor->tensor, delta_place);
        const double delta_size = size_at(*delta_.tensor, delta_place);
        weights[j] = std::exp(axes_.scale * weights[j] - at(lse_, tile.entry, query));
        double size = std::max(std::abs(slopes[j]), length * row_sizes[i] * column_sizes[j]);
        size = target_ == Target::Dv ? 1 : (size + delta_size) * std::abs(axes_.scale);
        size *= weights[j] * right_sizes[j];
        room.squares[i].add(size);
        room.deltas[i] = std::max(room.deltas[i], delta_size);
        slopes[j] = weights[j] * (slopes[j] - delta) * axes_.scale;
      }
    }
  }

  // out += left right. Skips the terms of columns that a row does not see, because 0 would
  // propagate a NaN.
  void add_product(const Tile& tile, const Panel& left, const Panel& right,
                   const Panel& out) const {
    const std::int64_t columns = std::ssize(tile.columns);
    for (std::int64_t i = 0; i < std::ssize(tile.rows); ++i) {
      const Panel row{left.data + i * left.stride, left.stride};
      const Panel sum{out.data + i * out.stride, out.stride};
      if (tile.seen[index(i)] == columns) {
        multiply_add(row, right, sum, 1, features_, columns);
        continue;
      }
      for (std::int64_t j = 0; j < columns; ++j) {
        if (!sees(tile.entry, tile.rows[index(i)], tile.columns[index(j)])) continue;
        for (std::int64_t d = 0; d < features_; ++d) {
          sum.data[d] += row.data[j] * right.data[j * right.stride + d];
        }
      }
    }
  }

  void write(std::int64_t batch, std::int64_t row, std::int64_t i, const Room& room) const {
    const double* sum = room.sum.data + i * features_;
    const double* common = room.common.data + i * features_;
    double widest = 0;
    for (std::int64_t d = 0; d < features_; ++d) widest = std::max(widest, std::abs(common[d]));
    // A query's delta error is common to all terms of its dq.
    const double scale =
        room.squares[index(i)].root() + std::abs(axes_.scale) * room.deltas[index(i)] * widest;
    for (std::int64_t d = 0; d < features_; ++d) {
      const std::int64_t place = out_.at(batch, row) + out_.columns[index(d)];
      result_.scales[place] = scale;
      result_.values[place] = sum[d];
    }
  }

  const LeafCall& call_;
  const AttentionAxes& axes_;
  const MaskData& data_;
  Target target_;
  const NamedTensor& result_;
  Sides sides_;
  AxisList entries_;  // batch entries: those of the target's rows, then those summed over
  std::int64_t columns_;
  std::int64_t dim_;
  std::int64_t value_dim_;
  std::int64_t features_;
  Matrix score_rows_;
  Matrix score_columns_;
  Matrix value_rows_;
  Matrix value_columns_;
  Matrix lse_;
  Matrix delta_;
  Places out_;
};

}  // namespace

Checked<ComputedRows> interpret_attention_backward(const LeafCall& call) {
  HP_TRY(const AttentionAxes axes, attention_axes(call, {.q = call.operands[kQ],
                                                         .k = call.operands[kK],
                                                         .v = call.operands[kV],
                                                         .o = call.operands[kDo]}));
  for (const std::size_t operand : {kLse, kDelta}) {
    HP_REQUIRE_OK(check_axes(call, call.operands[operand], {&axes.batch, &axes.query}));
  }
  ComputedRows rows;
  for (const Target target : {Target::Dq, Target::Dk, Target::Dv}) {
    const NamedTensor& result = call.targets[static_cast<std::size_t>(target)];
    const AxisList& positions = target == Target::Dq ? axes.query : axes.key;
    const AxisList& features = target == Target::Dv ? axes.value_dim : axes.head_dim;
    HP_REQUIRE_OK(check_axes(call, result, {&axes.batch, &positions, &features}));
    HP_TRY(const MaskData data, MaskData::make(call, axes, entries_of(axes, result, target)));
    rows.push_back(Backward(call, axes, data, target).run());
  }
  return rows;
}

}  // namespace harpe
