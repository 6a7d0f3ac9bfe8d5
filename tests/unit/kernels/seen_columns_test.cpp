#include "exec/cpu/kernels/seen_columns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace harpe {
namespace {

TEST(SeenColumns, are_those_that_position_and_label_both_show) {
  std::mt19937_64 random(5);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  SeenColumns seen;
  int whole = 0;
  int nothing = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::int64_t rows = draw(1, 6);
    const std::int64_t columns = draw(1, 9);
    Visibility visible;
    if (draw(0, 2) > 0) visible.high = draw(-3, 8);
    if (draw(0, 2) > 0) visible.low = std::min(visible.high, draw(-6, 6));
    if (draw(0, 2) == 0) visible.prefix = draw(0, 5);
    std::vector<std::int64_t> labels(static_cast<std::size_t>(rows + columns));
    const std::int64_t kinds = draw(0, 3);
    for (std::int64_t& label : labels) label = draw(0, kinds);
    for (std::size_t key = static_cast<std::size_t>(rows); key < labels.size(); ++key) {
      if (draw(0, 5) == 0) labels[key] = kUnseenLabel;
    }
    const bool labelled = draw(0, 4) > 0;
    const SeenLabels given =
        labelled ? SeenLabels{labels.data(), labels.data() + rows} : SeenLabels{};
    seen.set(visible, given, rows, columns);
    std::int64_t found = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        const std::int64_t difference = column - row;
        const bool by_position =
            column < visible.prefix || (visible.low <= difference && difference <= visible.high);
        const bool by_label = !labelled || given.queries[row] == given.keys[column];
        const bool has = seen.all() || std::ranges::any_of(seen.of(row), [&](const ColumnRun& run) {
                           return run.begin <= column && column < run.end;
                         });
        ASSERT_EQ(has, by_position && by_label) << "case " << i << ": " << row << " " << column;
        found += has ? 1 : 0;
      }
      if (seen.all()) continue;
      std::int64_t end = -1;
      for (const ColumnRun& run : seen.of(row)) {
        ASSERT_TRUE(end <= run.begin && run.begin < run.end) << "ascending and apart";
        end = run.end;
      }
    }
    ASSERT_EQ(seen.all(), found == rows * columns && seen.all());
    ASSERT_EQ(seen.none(), found == 0);
    whole += seen.all() ? 1 : 0;
    nothing += seen.none() ? 1 : 0;
  }
  EXPECT_GT(whole, 100);
  EXPECT_GT(nothing, 100);
}

std::vector<std::int64_t> keys_of(const SeenLabels& labels, std::int64_t count) {
  return {labels.keys, labels.keys + count};
}

TEST(MaskLabels, are_documents_by_position) {
  const std::vector<std::int32_t> documents = {7, 7, 8, 8, 8, 9};
  MaskTables tables;
  tables.documents.data = documents.data();
  tables.first_query = 1;
  tables.first_key = 3;
  const SeenLabels labels = make_labels(tables, 3, 3);
  EXPECT_EQ((std::vector<std::int64_t>{labels.queries, labels.queries + 3}),
            (std::vector<std::int64_t>{7, 8, 8}));
  EXPECT_EQ(keys_of(labels, 3), (std::vector<std::int64_t>{8, 8, 9}));
  EXPECT_EQ(labels.from(1, 2).queries[0], 8);
  EXPECT_EQ(labels.from(1, 2).keys[0], 9);
}

TEST(MaskLabels, count_keys_of_pages_where_they_lie_and_ignore_pages_that_are_not_there) {
  const std::vector<std::int32_t> pages = {2, 0, 99, -7};  // of two slots each
  const std::int32_t length = 3;
  MaskTables tables;
  tables.length.data = &length;
  tables.pages.data = pages.data();
  tables.page = 2;
  tables.page_count = 4;
  constexpr std::int64_t kNo = kUnseenLabel;
  EXPECT_EQ(keys_of(make_labels(tables, 1, 8), 8),
            (std::vector<std::int64_t>{0, kNo, kNo, kNo, 0, 0, kNo, kNo}));
  tables.first_key = 4;
  EXPECT_EQ(keys_of(make_labels(tables, 1, 3), 3), (std::vector<std::int64_t>{0, 0, kNo}));
  tables.length = {};
  EXPECT_EQ(keys_of(make_labels(tables, 1, 3), 3), (std::vector<std::int64_t>{0, 0, kNo}));
}

TEST(MaskLabels, are_none_without_tables) { EXPECT_FALSE(make_labels({}, 5, 5).any()); }

}  // namespace
}  // namespace harpe
