#include "exec/cpu/kernels/seen_columns.h"

#include <algorithm>

namespace harpe {
namespace {

std::int64_t clamped(std::int64_t column, std::int64_t columns) {
  return std::clamp<std::int64_t>(column, 0, columns);
}

bool shows_all(const Visibility& visible, std::int64_t rows, std::int64_t columns) {
  const std::int64_t shown = clamped(visible.prefix, columns);
  return shown == columns || (visible.low <= shown - (rows - 1) && columns - 1 <= visible.high);
}

}  // namespace

void SeenColumns::set(const Visibility& visible, const SeenLabels& labels, std::int64_t rows,
                      std::int64_t columns) {
  runs_.clear();
  first_.clear();
  split(labels, columns);
  const bool same = !labels.any() || is_one(labels, rows, columns);
  if (same && shows_all(visible, rows, columns)) return;
  for (std::int64_t row = 0; row < rows; ++row) {
    first_.push_back(runs_.size());
    const std::int64_t shown = clamped(visible.prefix, columns);
    ColumnRun band{clamped(row + visible.low, columns), clamped(row + visible.high + 1, columns)};
    const bool meet = band.begin <= shown && band.begin < band.end;
    if (shown > 0 && meet) band = {0, std::max(band.end, shown)};
    if (shown > 0 && !meet) add({0, shown}, labels, row);
    if (band.begin < band.end) add(band, labels, row);
  }
  first_.push_back(runs_.size());
}

void SeenColumns::split(const SeenLabels& labels, std::int64_t columns) {
  labelled_.clear();
  if (!labels.any()) return;
  for (std::int64_t column = 0; column < columns;) {
    const std::int64_t begin = column;
    const std::int64_t label = labels.keys[begin];
    while (column < columns && labels.keys[column] == label) ++column;
    if (label != kUnseenLabel) labelled_.push_back({{begin, column}, label});
  }
}

bool SeenColumns::is_one(const SeenLabels& labels, std::int64_t rows, std::int64_t columns) const {
  if (labelled_.size() != 1 || labelled_.front().run.end - labelled_.front().run.begin != columns) {
    return false;
  }
  return std::all_of(labels.queries, labels.queries + rows,
                     [&](std::int64_t label) { return label == labelled_.front().label; });
}

void SeenColumns::add(const ColumnRun& run, const SeenLabels& labels, std::int64_t row) {
  if (!labels.any()) {
    runs_.push_back(run);
    return;
  }
  for (const Labelled& part : labelled_) {
    if (part.label != labels.queries[row]) continue;
    const ColumnRun both{std::max(run.begin, part.run.begin), std::min(run.end, part.run.end)};
    if (both.begin < both.end) runs_.push_back(both);
  }
}

ColumnRun seen_by_rows(const Visibility& visible, std::int64_t rows, std::int64_t keys) {
  return {.begin = visible.prefix > 0 ? 0 : clamped(visible.low, keys),
          .end = clamped(std::max(visible.prefix, rows + visible.high), keys)};
}

}  // namespace harpe
