#include "exec/timestamps.h"

#include <gtest/gtest.h>

namespace harpe::test {
namespace {

TEST(Timestamps, are_behind_each_execution) {
  const Timestamps stamps(3);
  EXPECT_EQ(stamps.last(), 3);
  EXPECT_TRUE(stamps.time_each());
  for (const std::int64_t i : {1, 2, 3}) {
    EXPECT_EQ(stamps.behind(i), i);
    EXPECT_EQ(stamps.executions_until(i), 1);
  }
}

TEST(Timestamps, in_a_row_are_behind_the_first_and_the_last) {
  const Timestamps stamps(11, true);
  EXPECT_EQ(stamps.last(), 2);
  EXPECT_FALSE(stamps.time_each());
  EXPECT_EQ(stamps.behind(1), 1);
  for (std::int64_t i = 2; i < 11; ++i) EXPECT_EQ(stamps.behind(i), std::nullopt);
  EXPECT_EQ(stamps.behind(11), 2);
  EXPECT_EQ(stamps.executions_until(1), 1);
  EXPECT_EQ(stamps.executions_until(2), 10);
}

// All timestamps together span all executions.
TEST(Timestamps, leave_out_no_execution) {
  for (const bool in_a_row : {false, true}) {
    for (std::int64_t executions = 0; executions < 6; ++executions) {
      const Timestamps stamps(executions, in_a_row);
      std::int64_t spanned = 0;
      for (std::int64_t at = 1; at <= stamps.last(); ++at) spanned += stamps.executions_until(at);
      EXPECT_EQ(spanned, executions);
      EXPECT_TRUE(executions == 0 || stamps.behind(executions) == stamps.last());
    }
  }
}

}  // namespace
}  // namespace harpe::test
