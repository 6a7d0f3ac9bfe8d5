#include "exec/cuda/executor/checks.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "exec/cuda/target/check_tasks.h"
#include "sync/nodes.h"
#include "tests/support/fake_driver.h"
#include "tests/support/proxy_plan.h"
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
  EXPECT_EQ(*two, (std::vector<GpuPart>{{.gpu = DeviceId(0)}, {.gpu = DeviceId(1)}}));
  const auto few = gpus_of(*driver, 3, {});
  ASSERT_FALSE(few.ok());
  EXPECT_EQ(few.error().code, DiagCode::G070);
  EXPECT_EQ(render_message(few.error()), "3 ranks need a GPU each, and there are 2");
  const auto shared = gpus_of(*driver, 3, {.share_gpus = true});
  ASSERT_TRUE(shared.ok());
  EXPECT_EQ(*shared, (std::vector<GpuPart>{
                         {.gpu = DeviceId(0)}, {.gpu = DeviceId(1)}, {.gpu = DeviceId(0)}}));
  const auto divided = gpus_of(*driver, 3, {.divide_gpus = true});
  ASSERT_TRUE(divided.ok());
  EXPECT_EQ(*divided, (std::vector<GpuPart>{{.gpu = DeviceId(0), .index = 0, .parts = 2},
                                            {.gpu = DeviceId(1)},
                                            {.gpu = DeviceId(0), .index = 1, .parts = 2}}));
  fake_gpu().devices = 0;
  EXPECT_FALSE(gpus_of(*driver, 1, {.share_gpus = true}).ok());
}

TEST(ExecutorChecks, give_a_process_the_gpu_of_its_rank) {
  const auto driver = make_fake_driver();
  fake_gpu().devices = 4;
  const processes::Launch launch{.rank = 3, .ranks = 4, .local_rank = 3, .address = "unix:@none"};
  const auto own = gpus_of(*driver, 4, {.launch = launch});
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(*own, std::vector<GpuPart>{{.gpu = DeviceId(3)}});
  fake_gpu().devices = 2;
  EXPECT_EQ(*gpus_of(*driver, 4, {.share_gpus = true, .launch = launch}),
            std::vector<GpuPart>{{.gpu = DeviceId(1)}});
  const auto refused =
      check_launch({.divide_gpus = true, .launch = launch}, test::exchange(4, 8, false));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(render_message(refused.error()),
            "this process was started as one of several, and `WORLD_SIZE` is 4, but GPUs are "
            "divided between the ranks of one process");
  EXPECT_EQ(gpus_of(*driver, 4, {.launch = launch}).error().code, DiagCode::G070);
}

TEST(ExecutorChecks, refuse_transports_that_cross_machines) {
  Plan plan = test::exchange(2, 8, false);
  EXPECT_TRUE(check_tasks(plan).ok());
  for (const Via via : {Via::Ibgda, Via::Multimem}) {
    Plan other = plan;
    for (Task& task : other.tasks) {
      if (task.kind == TaskKind::Copy) task.via = via;
    }
    const auto refused = check_tasks(other);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, DiagCode::G074);
    // The executor refuses before it opens anything, so no driver is needed.
    const auto executor = make_cuda_executor(other, {});
    ASSERT_FALSE(executor.ok());
    EXPECT_EQ(executor.error().code, DiagCode::G074);
  }
}

TEST(ExecutorChecks, let_puts_alone_cross_nodes) {
  const Plan plan = test::by_proxy(test::push_plan(), Fence::NicOrdered);
  EXPECT_TRUE(check_tasks(plan).ok());
  // Adds a copy by another transport into the other node.
  Plan other = plan;
  const std::vector<TaskId> puts = sync::puts_of(plan);
  Queue queue = plan.queues[plan.tasks[puts[0].index()].queue.index()];
  queue.kind = QueueKind::Ce;
  other.queues.push_back(queue);
  other.tasks.push_back(plan.tasks[puts[0].index()]);
  other.tasks.back().queue = QueueId(static_cast<std::int64_t>(other.queues.size()) - 1);
  other.tasks.back().via = Via::Ce;
  const auto refused = check_tasks(other);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, DiagCode::G090) << render(refused.error());
}

TEST(ExecutorChecks, refuse_barriers_that_count_puts_before_the_end) {
  Plan plan = test::by_proxy(test::push_plan(), Fence::NicOrdered);
  const TaskId put = sync::puts_of(plan).front();
  const auto of_kind = [&](TaskKind kind) {
    const auto found = std::ranges::find(plan.tasks, kind, &Task::kind);
    return TaskId(found - plan.tasks.begin());
  };
  plan.barriers = {{.from = {put}, .to = {of_kind(TaskKind::Exit)}, .flag = 90}};
  EXPECT_TRUE(check_tasks(plan).ok());
  plan.barriers = {{.from = {put}, .to = {of_kind(TaskKind::Compute)}, .flag = 90}};
  const auto refused = check_tasks(plan);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, DiagCode::G091) << render(refused.error());
}

}  // namespace
}  // namespace harpe::cuda
