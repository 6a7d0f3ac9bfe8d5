#include <algorithm>
#include <cmath>
#include <vector>

#include "ir/interpret_leaves.h"
#include "ir/interpret_math.h"
#include "ir/interpret_rows.h"
#include "ir/interpret_sizes.h"

namespace harpe {
namespace {

constexpr std::int64_t kPanelRows = 128;
constexpr std::int64_t kPanelColumns = 256;
constexpr std::int64_t kDepth = 256;

// c[batch, row, column] = sum over the depth of a[batch, row, depth] * b[batch, depth, column].
struct Axes {
  AxisList batch;    // of all three
  AxisList rows;     // of c and not of b
  AxisList columns;  // of c, b and not of a
  AxisList depth;    // not of c
};

Checked<Axes> axes_of(const LeafCall& call) {
  const NamedTensor& a = call.operands[0];
  const NamedTensor& b = call.operands[1];
  const NamedTensor& c = call.targets[0];
  Axes axes;
  for (const NamedTensor::Axis& axis : c.axes()) {
    if (b.find(axis.name) == nullptr) {
      axes.rows.push_back(axis);
    } else if (a.find(axis.name) == nullptr) {
      axes.columns.push_back(axis);
    } else {
      axes.batch.push_back(axis);
    }
  }
  for (const NamedTensor* operand : {&a, &b}) {
    for (const NamedTensor::Axis& axis : operand->axes()) {
      for (const NamedTensor* other : {&a, &b, &c}) {
        const NamedTensor::Axis* same = other->find(axis.name);
        if (same == nullptr || same->size == axis.size) continue;
        return misfit(call, *operand,
                      "one extent is " + std::to_string(axis.size) + " and " +
                          std::to_string(same->size) + " in `" + other->buffer + "`");
      }
      const bool known =
          std::ranges::find(axes.depth, axis.name, &NamedTensor::Axis::name) != axes.depth.end();
      if (c.find(axis.name) == nullptr && !known) axes.depth.push_back(axis);
    }
  }
  return axes;
}

// Offsets of the points of the four index spaces in each tensor.
struct Places {
  std::vector<std::int64_t> batch;
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> columns;
  std::vector<std::int64_t> depth;
  Places(const NamedTensor& tensor, const Axes& axes)
      : batch(offsets_in(tensor, axes.batch)),
        rows(offsets_in(tensor, axes.rows)),
        columns(offsets_in(tensor, axes.columns)),
        depth(offsets_in(tensor, axes.depth)) {}
};

std::span<const std::int64_t> slice(const std::vector<std::int64_t>& values, std::int64_t first,
                                    std::int64_t count) {
  return std::span(values).subspan(static_cast<std::size_t>(first),
                                   static_cast<std::size_t>(count));
}

class Product {
 public:
  Product(const LeafCall& call, const Axes& axes)
      : call_(call),
        a_(call.operands[0], axes),
        b_(call.operands[1], axes),
        c_(call.targets[0], axes),
        columns_of_b_(b_.batch.size() * b_.depth.size()) {
    call.workers.for_each(std::ssize(columns_of_b_), [&](int, std::int64_t item) {
      measure_columns(static_cast<std::size_t>(item));
    });
  }

  // Memory of one worker's three panels.
  static constexpr std::size_t kRoom =
      kPanelRows * kDepth + kDepth * kPanelColumns + kPanelRows * kPanelColumns;

  void compute(int worker, const RowBlock& block, double* room) const {
    const auto batch = static_cast<std::size_t>(block.batch);
    const std::int64_t rows = std::ssize(block.rows);
    std::vector<std::int64_t> rows_of_a;
    for (const std::int64_t row : block.rows) {
      rows_of_a.push_back(a_.rows[static_cast<std::size_t>(row)]);
    }
    const Panel left{room, kDepth};
    const Panel right{room + kPanelRows * kDepth, kPanelColumns};
    const Panel sum{room + kPanelRows * kDepth + kDepth * kPanelColumns, kPanelColumns};
    measure(block);
    for (std::int64_t j = 0; j < std::ssize(c_.columns); j += kPanelColumns) {
      const std::int64_t columns = std::min(kPanelColumns, std::ssize(c_.columns) - j);
      std::fill_n(sum.data, rows * kPanelColumns, 0.0);
      for (std::int64_t p = 0; p < std::ssize(a_.depth); p += kDepth) {
        if (!call_.workers.goes_on(worker)) return;
        const std::int64_t depth = std::min(kDepth, std::ssize(a_.depth) - p);
        gather({.tensor = call_.operands[0].tensor,
                .base = a_.batch[batch],
                .rows = rows_of_a,
                .columns = slice(a_.depth, p, depth)},
               left.data, left.stride);
        gather({.tensor = call_.operands[1].tensor,
                .base = b_.batch[batch],
                .rows = slice(b_.depth, p, depth),
                .columns = slice(b_.columns, j, columns)},
               right.data, right.stride);
        multiply_add(left, right, sum, rows, columns, depth);
      }
      write(block, sum, j, columns);
    }
  }

  // Rows of the target (all dimensions but the last) with an element in the blocks.
  [[nodiscard]] std::vector<std::int64_t> rows_written(const std::vector<RowBlock>& blocks) const {
    std::vector<std::int64_t> rows;
    for (const RowBlock& block : blocks) {
      for (const std::int64_t row : block.rows) {
        for (const std::int64_t column : c_.columns) {
          const std::int64_t flat = at(block.batch, row) + column;
          const std::int64_t found = flat / call_.targets[0].tensor->shape.back();
          if (rows.empty() || rows.back() != found) rows.push_back(found);
        }
      }
    }
    return ascending(std::move(rows));
  }

 private:
  [[nodiscard]] std::int64_t at(std::int64_t batch, std::int64_t row) const {
    return c_.batch[static_cast<std::size_t>(batch)] + c_.rows[static_cast<std::size_t>(row)];
  }

  // The root mean square over the columns, for one row of b, [batch, depth].
  void measure_columns(std::size_t item) {
    const std::int64_t base = b_.batch[item / b_.depth.size()] + b_.depth[item % b_.depth.size()];
    columns_of_b_[item] = measure_row(call_.operands[1], base, b_.columns);
  }

  // The root of the sum of a^2 b^2 over the depth, averaged over the columns: once for errors of a
  // and once for errors of b.
  void measure(const RowBlock& block) const {
    const auto batch = static_cast<std::size_t>(block.batch);
    for (const std::int64_t row : block.rows) {
      const std::int64_t from = a_.batch[batch] + a_.rows[static_cast<std::size_t>(row)];
      Squares of_a;
      Squares of_b;
      for (std::size_t i = 0; i < a_.depth.size(); ++i) {
        const Measure& b = columns_of_b_[batch * a_.depth.size() + i];
        of_a.add(size_at(call_.operands[0], from + a_.depth[i]) * b.factor);
        of_b.add(factor_at(call_.operands[0], from + a_.depth[i]) * b.size);
      }
      const double scale = std::max(of_a.root(), of_b.root());
      for (const std::int64_t column : c_.columns) {
        call_.targets[0].scales[at(block.batch, row) + column] = scale;
      }
    }
  }

  void write(const RowBlock& block, const Panel& sum, std::int64_t j, std::int64_t columns) const {
    double* out = call_.targets[0].values;
    for (std::size_t i = 0; i < block.rows.size(); ++i) {
      const double* from = sum.data + static_cast<std::int64_t>(i) * sum.stride;
      double* to = out + at(block.batch, block.rows[i]);
      for (const std::int64_t column : slice(c_.columns, j, columns)) {
        to[column] = *from++;
      }
    }
  }

  const LeafCall& call_;
  Places a_;
  Places b_;
  Places c_;
  std::vector<Measure> columns_of_b_;  // [batch, depth]
};

// Drops the rows of unused slots.
Checked<std::vector<RowBlock>> keep_used(const LeafCall& call, const Axes& axes,
                                         std::vector<RowBlock> blocks) {
  if (!call.used) return blocks;
  const std::optional<std::size_t> expert = place_of(axes.batch, call.used->expert);
  const std::optional<std::size_t> slot = place_of(axes.rows, call.used->slot);
  if (!expert || !slot) {
    return misfit(call, call.targets[0],
                  "its slots `" + call.used->slot + "` are not rows of a GEMM per `" +
                      call.used->expert + "`");
  }
  for (RowBlock& block : blocks) {
    const auto e = static_cast<std::size_t>(coordinate(axes.batch, *expert, block.batch));
    std::erase_if(block.rows, [&](std::int64_t row) {
      return coordinate(axes.rows, *slot, row) >= call.used->counts[e];
    });
  }
  std::erase_if(blocks, [](const RowBlock& block) { return block.rows.empty(); });
  return blocks;
}

}  // namespace

Checked<ComputedRows> interpret_matmul(const LeafCall& call) {
  HP_TRY(const Axes axes, axes_of(call));
  const Product product(call, axes);
  const std::int64_t batches = points_in(axes.batch);
  HP_TRY(const std::vector<RowBlock> blocks,
         keep_used(call, axes, choose_rows(batches, axes.rows, call.sample, kPanelRows)));
  std::vector<std::vector<double>> rooms(call.workers.count(), std::vector<double>(Product::kRoom));
  call.workers.for_each(std::ssize(blocks), [&](int worker, std::int64_t item) {
    product.compute(worker, blocks[static_cast<std::size_t>(item)],
                    rooms[static_cast<std::size_t>(worker)].data());
  });
  ComputedRows computed(1);
  if (is_sampled(batches, axes.rows, call.sample)) computed[0] = product.rows_written(blocks);
  return computed;
}

}  // namespace harpe
