#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "exec/cpu/kernels/mask_tables.h"
#include "ir/visibility.h"

namespace harpe {

// Columns [begin, end).
struct ColumnRun {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Per row of a tile of scores: the runs of columns that it sees, ascending and disjoint.
class SeenColumns {
 public:
  // `visible` and `labels` refer to rows and columns of the tile.
  void set(const Visibility& visible, const SeenLabels& labels, std::int64_t rows,
           std::int64_t columns);

  // Every row sees every column; then `of` must not be called.
  [[nodiscard]] bool all() const { return first_.empty(); }
  [[nodiscard]] bool none() const { return !all() && runs_.empty(); }
  [[nodiscard]] std::span<const ColumnRun> of(std::int64_t row) const {
    const auto at = static_cast<std::size_t>(row);
    return std::span(runs_).subspan(first_[at], first_[at + 1] - first_[at]);
  }

 private:
  struct Labelled {
    ColumnRun run;
    std::int64_t label;
  };

  // Splits the columns into runs of one label; columns that no row sees are in no run.
  void split(const SeenLabels& labels, std::int64_t columns);
  // All rows and columns have one label.
  [[nodiscard]] bool is_one(const SeenLabels& labels, std::int64_t rows,
                            std::int64_t columns) const;
  // Adds the part of a run that the row sees.
  void add(const ColumnRun& run, const SeenLabels& labels, std::int64_t row);

  std::vector<Labelled> labelled_;
  std::vector<ColumnRun> runs_;
  std::vector<std::size_t> first_;  // per row: index in runs_ of its first run; then the end
};

// The range of keys that contains all keys visible to the first `rows` queries.
[[nodiscard]] ColumnRun seen_by_rows(const Visibility& visible, std::int64_t rows,
                                     std::int64_t keys);

// Fills the gaps between the runs, from `begin` to `end`.
template <class Real>
void fill_hidden(Real* row, std::span<const ColumnRun> runs, std::int64_t begin, std::int64_t end,
                 Real value) {
  for (const ColumnRun& run : runs) {
    for (; begin < run.begin; ++begin) row[begin] = value;
    begin = run.end;
  }
  for (; begin < end; ++begin) row[begin] = value;
}

}  // namespace harpe
