#include "exec/cuda/executor/checks.h"

#include <gtest/gtest.h>

#include "tests/support/fake_driver.h"
#include "tests/unit/exec/plans.h"

namespace harpe::cuda {
namespace {

using testing_support::fake_gpu;
using testing_support::make_fake_driver;

TEST(ExecutorChecks, give_every_rank_a_gpu_or_refuse) {
  const auto driver = make_fake_driver();
  fake_gpu().devices = 2;
  const auto two = gpus_of(*driver, 2, {});
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(*two, (std::vector{DeviceId(0), DeviceId(1)}));
  const auto few = gpus_of(*driver, 3, {});
  ASSERT_FALSE(few.ok());
  EXPECT_EQ(few.error().code, DiagCode::G070);
  EXPECT_EQ(render_message(few.error()), "3 ranks need a GPU each, and there are 2");
  const auto shared = gpus_of(*driver, 3, {.share_gpus = true});
  ASSERT_TRUE(shared.ok());
  EXPECT_EQ(*shared, (std::vector{DeviceId(0), DeviceId(1), DeviceId(0)}));
  fake_gpu().devices = 0;
  EXPECT_FALSE(gpus_of(*driver, 1, {.share_gpus = true}).ok());
}

TEST(ExecutorChecks, give_a_process_the_gpu_of_its_rank) {
  const auto driver = make_fake_driver();
  fake_gpu().devices = 4;
  const processes::Launch launch{.rank = 3, .ranks = 4, .local_rank = 3, .address = "unix:@none"};
  const auto own = gpus_of(*driver, 4, {.launch = launch});
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(*own, std::vector{DeviceId(3)});
  fake_gpu().devices = 2;
  EXPECT_EQ(*gpus_of(*driver, 4, {.share_gpus = true, .launch = launch}), std::vector{DeviceId(1)});
  EXPECT_EQ(gpus_of(*driver, 4, {.launch = launch}).error().code, DiagCode::G070);
}

TEST(ExecutorChecks, refuse_transports_that_cross_machines) {
  Plan plan = test::exchange(2, 8, false);
  EXPECT_TRUE(check_tasks(plan).ok());
  for (const Via via : {Via::Proxy, Via::Ibgda, Via::Multimem}) {
    Plan other = plan;
    for (Task& task : other.tasks) {
      if (task.kind == TaskKind::Copy) task.via = via;
    }
    const auto refused = check_tasks(other);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, DiagCode::G074);
    // Before anything is opened: no driver is needed.
    const auto executor = make_cuda_executor(other, {});
    ASSERT_FALSE(executor.ok());
    EXPECT_EQ(executor.error().code, DiagCode::G074);
  }
}

}  // namespace
}  // namespace harpe::cuda
