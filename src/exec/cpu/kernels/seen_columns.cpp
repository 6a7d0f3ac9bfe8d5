#include "exec/cpu/kernels/seen_columns.h"

#include <algorithm>

namespace harpe {

void SeenColumns::set(const Visibility& visible, std::int64_t rows, std::int64_t columns) {
  runs_.clear();
  first_.clear();
  const std::int64_t shown = std::clamp<std::int64_t>(visible.prefix, 0, columns);
  if (shown == columns || (visible.low <= shown - (rows - 1) && columns - 1 <= visible.high)) {
    return;
  }
  const auto clamped = [&](std::int64_t column) {
    return std::clamp<std::int64_t>(column, 0, columns);
  };
  for (std::int64_t row = 0; row < rows; ++row) {
    first_.push_back(runs_.size());
    ColumnRun band{clamped(row + visible.low), clamped(row + visible.high + 1)};
    const bool meet = band.begin <= shown && band.begin < band.end;
    if (shown > 0 && meet) band = {0, std::max(band.end, shown)};
    if (shown > 0 && !meet) runs_.push_back({0, shown});
    if (band.begin < band.end) runs_.push_back(band);
  }
  first_.push_back(runs_.size());
}

ColumnRun seen_by_rows(const Visibility& visible, std::int64_t rows, std::int64_t keys) {
  const auto clamped = [&](std::int64_t key) { return std::clamp<std::int64_t>(key, 0, keys); };
  return {.begin = visible.prefix > 0 ? 0 : clamped(visible.low),
          .end = clamped(std::max(visible.prefix, rows + visible.high))};
}

}  // namespace harpe
