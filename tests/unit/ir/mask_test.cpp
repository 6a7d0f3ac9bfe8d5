#include "ir/mask.h"

#include <gtest/gtest.h>

#include <random>

namespace harpe {
namespace {

bool sees(const Visibility& visible, std::int64_t query, std::int64_t key) {
  return key < visible.prefix || (visible.low <= key - query && key - query <= visible.high);
}

Coverage counted(const Visibility& visible, Interval queries, Interval keys) {
  std::int64_t seen = 0;
  for (std::int64_t query = queries.begin; query < queries.end; ++query) {
    for (std::int64_t key = keys.begin; key < keys.end; ++key) seen += sees(visible, query, key);
  }
  if (seen == 0) return Coverage::Empty;
  return seen == queries.size() * keys.size() ? Coverage::Full : Coverage::Partial;
}

TEST(Visibility, of_a_block_is_what_counting_its_points_gives) {
  std::mt19937_64 random(3);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int i = 0; i < 20000; ++i) {
    Visibility visible;
    if (draw(0, 2) > 0) visible.high = draw(-8, 8);
    if (draw(0, 2) > 0) visible.low = std::min(visible.high, draw(-12, 8));
    if (draw(0, 2) > 0) visible.prefix = draw(0, 9);
    const std::int64_t query = draw(0, 12);
    const std::int64_t key = draw(0, 12);
    const Interval queries{query, query + draw(0, 4)};
    const Interval keys{key, key + draw(0, 4)};
    ASSERT_EQ(classify(visible, queries, keys), counted(visible, queries, keys))
        << visible.low << " " << visible.high << " " << visible.prefix << ": " << query << " + "
        << queries.size() << ", " << key << " + " << keys.size();
    const Visibility moved = seen_from(visible, query, key);
    ASSERT_EQ(sees(moved, 2, 3), sees(visible, query + 2, key + 3));
  }
}

}  // namespace
}  // namespace harpe
