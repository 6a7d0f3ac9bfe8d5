#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "tests/multihost/executor/crew.h"

// CPU ranks in several processes, on one or several hosts, give the same results as in one process.
namespace harpe::test {
namespace executor_test {

const std::vector<std::string> kAttention = {"batch=1",    "seq=64",      "heads=4",  "kv_heads=2",
                                             "head_dim=8", "causal=true", "dtype=f32"};
const std::vector<std::string> kProduct = {"m=48", "n=40", "k=56", "dtype=bf16"};
const std::vector<std::string> kExperts = {"tokens=48", "hidden=24", "experts=8",
                                           "topk=2",    "inter=16",  "dtype=f32"};

using Outputs = std::map<std::string, std::vector<std::byte>>;

Outputs outputs_of(const Executor& executor, const Program& program) {
  Outputs outputs;
  for (const Buffer* buffer : buffers_of(program)) {
    if (buffer->role == Role::Out) outputs[buffer->name] = executor.output(buffer->name)->data;
  }
  return outputs;
}

struct Ran {
  Outputs outputs;
  RunStats stats;
};

Ran run_alone(const Plan& plan) {
  Ran ran;
  const auto executor = make_cpu_executor(plan, {}).value();
  for (const auto& [name, tensor] : draw_inputs(plan)) {
    (void)executor->set_input(name, tensor).value();
  }
  ran.stats = executor->run({}).value();
  ran.outputs = outputs_of(*executor, plan.program);
  return ran;
}

// Runs 2 and then 3 executions, with random delays.
Ran run_in_processes(const Plan& plan, int processes, int hosts) {
  Ran ran;
  in_every_process(
      plan, processes, hosts,
      [](int process, CpuOptions& options) { options.delay_seed = 11 + process; },
      [&](int process, Executor& executor) {
        for (const std::int64_t iterations : {2, 3}) {
          auto stats = executor.run({.iterations = iterations, .trace = iterations == 3});
          ASSERT_TRUE(stats.ok()) << render(stats.error());
          if (process == 0) ran.stats = std::move(stats).value();
        }
        if (process == 0) ran.outputs = outputs_of(executor, plan.program);
      });
  return ran;
}

void expect_same(const Case& one, std::optional<Fence> fence = std::nullopt) {
  SCOPED_TRACE(one.target + " " + one.schedule + " on " + one.mesh + ", " +
               std::to_string(one.processes) + " processes on " + std::to_string(one.hosts) +
               " hosts" + (fence ? ", fence " + std::string(print(*fence)) : ""));
  const Plan plan = plan_of(one, fence);
  const Ran alone = run_alone(plan);
  const Ran together = run_in_processes(plan, one.processes, one.hosts);
  EXPECT_EQ(together.outputs, alone.outputs);
  EXPECT_EQ(together.stats.bytes_moved, alone.stats.bytes_moved);
  EXPECT_EQ(together.stats.iterations.size(), 3U);
  EXPECT_EQ(together.stats.trace.size(), plan.tasks.size());
  EXPECT_EQ(together.stats.network.has_value(), one.hosts > 1);
  if (one.hosts > 1 && one.target != "moe") {  // the routing decides how much
    constexpr std::int64_t kExecutions = 5;
    EXPECT_EQ(together.stats.network->bytes, kExecutions * traffic_between(plan, one.hosts).bytes);
  }
}

TEST(Processes, of_one_host_share_memory) {
  expect_same({"attention", kAttention, "cp=4", "ring", 4, 1});
  expect_same({"attention", kAttention, "cp=4", "ulysses", 2, 1});  // collectives
  expect_same({"attention", kAttention, "cp=4", "tree", 4, 1});
  expect_same({"ag_gemm", kProduct, "tp=4", "bulk", 4, 1});
  expect_same({"ag_gemm", kProduct, "tp=4", "pull", 2, 1});  // operands in place
  expect_same({"gemm_rs", kProduct, "tp=4", "push", 4, 1});  // sums in place
  expect_same({"moe", kExperts, "ep=4", "push", 4, 1});
}

TEST(Processes, of_several_hosts_send_by_network) {
  expect_same({"attention", kAttention, "cp=4", "ring", 4, 4});
  expect_same({"attention", kAttention, "cp=8", "ring", 8, 4});
  expect_same({"attention", kAttention, "node=2,gpu=4", "double_ring", 8, 2});
  expect_same({"attention", kAttention, "node=2,gpu=2", "double_ring", 2, 2});
  expect_same({"ag_gemm", kProduct, "tp=4", "ring", 4, 4});
  expect_same({"gemm_rs", kProduct, "tp=4", "ring", 4, 2});
  expect_same({"gemm_rs", kProduct, "node=2,gpu=2", "hierarchical", 4, 2});
  expect_same({"gemm_rs", kProduct, "node=4,gpu=2", "hierarchical", 8, 4});
  expect_same({"moe", kExperts, "node=2,gpu=2", "hierarchical", 4, 2});
  expect_same({"moe", kExperts, "node=4,gpu=2", "hierarchical", 8, 4});
}

TEST(Processes, are_right_under_every_policy) {
  for (const Fence fence : {Fence::PerPut, Fence::PerDestination, Fence::NicOrdered, Fence::Batched,
                            Fence::OneQuiet, Fence::Immediate}) {
    expect_same({"attention", kAttention, "cp=4", "ring", 4, 4}, fence);
    expect_same({"gemm_rs", kProduct, "node=2,gpu=2", "hierarchical", 4, 2}, fence);
    expect_same({"moe", kExperts, "node=2,gpu=2", "hierarchical", 4, 2}, fence);
  }
}

// One process loses the worker of one of its tasks. All processes end within the limit, and process
// 0 names the rank and the task.
TEST(Processes, all_end_where_one_cannot_go_on) {
  const Plan plan = plan_of({"attention", kAttention, "cp=4", "ring", 4, 4});
  std::optional<TaskId> task;  // the last process's first put
  for (std::size_t i = 0; i < plan.tasks.size() && !task; ++i) {
    const bool is_last = plan.queues[plan.tasks[i].queue.index()].rank == RankId(3);
    if (is_last && is_put(plan, plan.tasks[i])) task = TaskId(static_cast<std::int64_t>(i));
  }
  std::atomic<int> ended = 0;
  in_every_process(
      plan, 4, 4,
      [&](int process, CpuOptions& options) {
        if (process == 3) options.lose_worker_at = task;
      },
      [&](int process, Executor& executor) {
        const auto start = std::chrono::steady_clock::now();
        const auto stats = executor.run({.wait_limit = std::chrono::milliseconds(500)});
        EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(2500));
        ++ended;
        ASSERT_FALSE(stats.ok());
        if (process != 0) return;
        EXPECT_EQ(stats.error().front().kind, FaultKind::WorkerLost) << render(stats.error());
        EXPECT_EQ(stats.error().front().rank, RankId(3));
        EXPECT_EQ(stats.error().front().task, task);
        const bool is_told = std::ranges::any_of(stats.error(), [](const Fault& fault) {
          return fault.kind == FaultKind::WaitTimedOut || fault.kind == FaultKind::WaitGivenUp;
        });
        EXPECT_TRUE(is_told) << "who waited for what: " << render(stats.error());
      });
  EXPECT_EQ(ended, 4);
}

}  // namespace executor_test
}  // namespace harpe::test
