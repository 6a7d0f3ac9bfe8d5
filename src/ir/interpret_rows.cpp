#include "ir/interpret_rows.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "support/rng.h"

namespace harpe {
namespace {

constexpr std::int64_t kSampledBatches = 16;

// A reproducible stream of random numbers.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : key_(mix_bits(seed + kStreamStep)) {}
  std::int64_t below(std::int64_t limit) {
    const std::uint64_t bits = mix_bits(key_ + ++drawn_ * kStreamStep);
    return static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(limit));
  }

 private:
  std::uint64_t key_;
  std::uint64_t drawn_ = 0;
};

using Row = std::pair<std::int64_t, std::int64_t>;  // batch entry, row

std::set<Row> sample_rows(std::int64_t batches, const AxisList& row_axes, const RowSample& sample) {
  Draws draws(sample.seed);
  std::vector<std::int64_t> pool{0, batches - 1};
  while (std::ssize(pool) < kSampledBatches) pool.push_back(draws.below(batches));
  std::set<Row> chosen;
  const std::int64_t rows = points_in(row_axes);
  const auto batch = [&] { return pool[static_cast<std::size_t>(draws.below(kSampledBatches))]; };
  std::int64_t inner = rows;  // rows per step of the axis
  for (const NamedTensor::Axis& axis : row_axes) {
    const std::int64_t outer = inner;
    inner /= axis.size;
    for (const std::int64_t border : sample.query_borders) {
      if (border < 0 || border >= axis.size) continue;
      for (int copy = 0; copy < 2; ++copy) {
        const std::int64_t row = draws.below(rows);
        chosen.insert({batch(), row / outer * outer + border * inner + row % inner});
      }
    }
  }
  // The pool may hold fewer rows than requested, so the attempts are bounded.
  for (std::int64_t attempt = 0; attempt < 16 * sample.rows; ++attempt) {
    if (std::ssize(chosen) >= sample.rows) break;
    const std::int64_t entry = batch();
    chosen.insert({entry, draws.below(rows)});
  }
  return chosen;
}

void append(std::vector<RowBlock>& blocks, std::int64_t batch, std::int64_t row,
            std::int64_t block) {
  if (blocks.empty() || blocks.back().batch != batch || std::ssize(blocks.back().rows) == block) {
    blocks.push_back({.batch = batch, .rows = {}});
  }
  blocks.back().rows.push_back(row);
}

}  // namespace

std::int64_t points_in(const AxisList& axes) {
  std::int64_t points = 1;
  for (const NamedTensor::Axis& axis : axes) points *= axis.size;
  return points;
}

std::optional<std::size_t> place_of(const AxisList& axes, const std::string& name) {
  const auto found = std::ranges::find(axes, name, &NamedTensor::Axis::name);
  if (found == axes.end()) return std::nullopt;
  return static_cast<std::size_t>(found - axes.begin());
}

std::int64_t coordinate(const AxisList& axes, std::size_t axis, std::int64_t point) {
  for (std::size_t i = axes.size() - 1; i > axis; --i) point /= axes[i].size;
  return point % axes[axis].size;
}

std::vector<std::int64_t> offsets_in(const NamedTensor& tensor, const AxisList& axes) {
  std::vector<std::int64_t> offsets{0};
  for (const NamedTensor::Axis& axis : axes) {
    const NamedTensor::Axis* own = tensor.find(axis.name);
    const std::int64_t stride = own == nullptr ? 0 : own->stride;
    std::vector<std::int64_t> next;
    next.reserve(offsets.size() * static_cast<std::size_t>(axis.size));
    for (const std::int64_t offset : offsets) {
      for (std::int64_t i = 0; i < axis.size; ++i) next.push_back(offset + i * stride);
    }
    offsets = std::move(next);
  }
  return offsets;
}

bool is_sampled(std::int64_t batches, const AxisList& row_axes,
                const std::optional<RowSample>& sample) {
  return sample && batches * points_in(row_axes) > sample->rows;
}

std::vector<RowBlock> choose_rows(std::int64_t batches, const AxisList& row_axes,
                                  const std::optional<RowSample>& sample, std::int64_t block) {
  std::vector<RowBlock> blocks;
  if (is_sampled(batches, row_axes, sample)) {
    for (const auto& [batch, row] : sample_rows(batches, row_axes, *sample)) {
      append(blocks, batch, row, block);
    }
    return blocks;
  }
  const std::int64_t rows = points_in(row_axes);
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    for (std::int64_t row = 0; row < rows; ++row) append(blocks, batch, row, block);
  }
  return blocks;
}

std::vector<std::int64_t> ascending(std::vector<std::int64_t> values) {
  std::ranges::sort(values);
  const auto repeated = std::ranges::unique(values);
  values.erase(repeated.begin(), repeated.end());
  return values;
}

}  // namespace harpe
