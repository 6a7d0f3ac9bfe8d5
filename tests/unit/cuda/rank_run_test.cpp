#include "exec/cuda/executor/rank_run.h"

#include <gtest/gtest.h>

namespace harpe::cuda {
namespace {

TEST(RankRun, orders_few_long_executions_and_many_short_ones_ahead) {
  EXPECT_EQ(window_of(0.05), 32U);
  EXPECT_EQ(window_of(10), 12U);
  EXPECT_EQ(window_of(60), 2U);
  EXPECT_EQ(window_of(1e9), 2U);
  EXPECT_EQ(window_of(0), 2U) << "not known";
}

}  // namespace
}  // namespace harpe::cuda
