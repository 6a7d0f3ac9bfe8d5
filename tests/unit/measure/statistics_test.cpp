#include "measure/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace harpe {
namespace {

using Values = std::vector<double>;

TEST(Statistics, quantiles_are_values) {
  EXPECT_EQ(quantile({3}, 0.5), 3);
  EXPECT_EQ(quantile({4, 1, 3, 2}, 0.5), 2);
  EXPECT_EQ(quantile({5, 1, 4, 2, 3}, 0.5), 3);
  EXPECT_EQ(quantile({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.9), 9);
  EXPECT_EQ(quantile({1, 2, 3}, 1), 3);
}

TEST(Statistics, a_median_lies_between_two_values) {
  EXPECT_FALSE(median_interval({1, 2, 3, 4, 5}).has_value());
  // All six above the median, or all below: 2 in 64.
  const auto six = median_interval({6, 5, 4, 3, 2, 1});
  EXPECT_EQ(six->low, 1);
  EXPECT_EQ(six->high, 6);
  Values twenty;
  for (int i = 20; i > 0; --i) twenty.push_back(i);
  // The textbook interval: the 6th and the 15th of 20, 95.9 %.
  EXPECT_EQ(median_interval(twenty)->low, 6);
  EXPECT_EQ(median_interval(twenty)->high, 15);
}

TEST(Statistics, correlations_of_order) {
  const Values up = {1, 2, 3, 4};
  EXPECT_DOUBLE_EQ(spearman(up, Values{10, 100, 1000, 1e9}), 1);
  EXPECT_DOUBLE_EQ(kendall(up, Values{10, 100, 1000, 1e9}), 1);
  EXPECT_DOUBLE_EQ(spearman(up, Values{4, 3, 2, 1}), -1);
  EXPECT_DOUBLE_EQ(kendall(up, Values{4, 3, 2, 1}), -1);
  // One neighbouring pair swapped: 1 - 6 * 2 / (4 * 15), and (5 - 1) / 6.
  EXPECT_DOUBLE_EQ(spearman(up, Values{1, 3, 2, 4}), 0.8);
  EXPECT_DOUBLE_EQ(kendall(up, Values{1, 3, 2, 4}), 4.0 / 6);
}

TEST(Statistics, equal_values_share_their_rank) {
  EXPECT_EQ(spearman(Values{1, 1, 1}, Values{1, 2, 3}), 0);
  EXPECT_EQ(kendall(Values{1, 1, 1}, Values{1, 2, 3}), 0);
  // Pairs: one tied on the left, two agree: 2 / sqrt(2 * 3).
  EXPECT_DOUBLE_EQ(kendall(Values{1, 1, 2}, Values{1, 2, 3}), 2 / std::sqrt(6.0));
  EXPECT_DOUBLE_EQ(spearman(Values{1, 1, 2}, Values{5, 5, 9}), 1);
}

}  // namespace
}  // namespace harpe
