#include <gtest/gtest.h>

#include "exec/cuda/executor/rank_reports.h"
#include "exec/cuda/executor/rank_run.h"

namespace harpe::cuda {
namespace {

TEST(RankRun, orders_few_long_executions_and_many_short_ones_ahead) {
  EXPECT_EQ(window_of(0.05), 32U);
  EXPECT_EQ(window_of(10), 12U);
  EXPECT_EQ(window_of(60), 2U);
  EXPECT_EQ(window_of(1e9), 2U);
  EXPECT_EQ(window_of(0), 2U) << "not known";
}

TEST(RankReport, is_the_same_in_another_process) {
  RankReport failed;
  failed.end = CudaError{.call = "cuGraphLaunch",
                         .status = CUDA_ERROR_OUT_OF_MEMORY,
                         .name = "CUDA_ERROR_OUT_OF_MEMORY",
                         .reason = "out of memory",
                         .where = {}};
  const RankReport back = unpack(pack(failed));
  ASSERT_TRUE(back.end.has_value());
  EXPECT_EQ(back.end->call, "cuGraphLaunch");
  EXPECT_EQ(back.end->status, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(back.end->name, "CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_EQ(back.end->reason, "out of memory");
  EXPECT_FALSE(back.record.has_value());
  EXPECT_TRUE(unpack(transport::Blob(3)).is_lost);
}

}  // namespace
}  // namespace harpe::cuda
