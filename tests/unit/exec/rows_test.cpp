#include "exec/actions/rows.h"

#include <gtest/gtest.h>

#include <map>

namespace harpe::actions {
namespace {

// The pairs of element offsets that a walk visits, by the first operand's offset.
std::map<std::int64_t, std::int64_t> visit(const Rows& rows) {
  std::map<std::int64_t, std::int64_t> pairs;
  rows.for_each([&](const auto& walk) {
    for (std::int64_t i = 0; i < rows.length(); ++i) {
      const bool is_new = pairs.emplace(walk.offset(0) + i, walk.offset(1) + i).second;
      EXPECT_TRUE(is_new);
    }
  });
  return pairs;
}

TEST(Rows, make_one_row_of_what_is_contiguous_in_every_operand) {
  const std::int64_t lengths[] = {2, 1, 3, 4};
  const std::vector<std::int64_t> dense[] = {{12, 12, 4, 1}, {12, 99, 4, 1}};
  const Rows rows(lengths, dense);
  EXPECT_EQ(rows.length(), 24);
  EXPECT_EQ(rows.count(), 1);
}

TEST(Rows, stop_where_one_operand_has_a_gap) {
  const std::int64_t lengths[] = {2, 3, 4};
  const std::vector<std::int64_t> strides[] = {{12, 4, 1}, {20, 4, 1}};
  const Rows rows(lengths, strides);
  EXPECT_EQ(rows.length(), 12);
  EXPECT_EQ(rows.count(), 2);
  const std::map<std::int64_t, std::int64_t> pairs = visit(rows);
  EXPECT_EQ(pairs.size(), 24U);
  EXPECT_EQ(pairs.at(0), 0);
  EXPECT_EQ(pairs.at(23), 31);
}

TEST(Rows, walk_transposed_operands_element_by_element) {
  const std::int64_t lengths[] = {3, 5};
  const std::vector<std::int64_t> strides[] = {{5, 1}, {1, 3}};
  const std::map<std::int64_t, std::int64_t> pairs = visit(Rows(lengths, strides));
  EXPECT_EQ(pairs.size(), 15U);
  for (std::int64_t i = 0; i < 3; ++i) {
    for (std::int64_t j = 0; j < 5; ++j) EXPECT_EQ(pairs.at(i * 5 + j), j * 3 + i);
  }
}

TEST(Rows, have_one_element_without_axes_and_none_with_an_empty_one) {
  const std::vector<std::int64_t> none[] = {{}, {}};
  EXPECT_EQ(visit(Rows({}, none)).size(), 1U);
  const std::int64_t lengths[] = {3, 0};
  const std::vector<std::int64_t> strides[] = {{1, 1}, {1, 1}};
  EXPECT_EQ(Rows(lengths, strides).count(), 0);
  EXPECT_TRUE(visit(Rows(lengths, strides)).empty());
}

}  // namespace
}  // namespace harpe::actions
