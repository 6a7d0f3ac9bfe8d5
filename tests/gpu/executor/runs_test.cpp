#include <array>
#include <chrono>

#include "exec/cuda/runtime/device_memory.h"
#include "exec/takes_turns.h"
#include "tests/gpu/executor/gpu_fixture.h"

namespace harpe::test {
namespace runs_test {

// Sums of at most 96 products of values below 1, in f32.
constexpr double kBound = 1e-4;

class Runs : public OnGpus {
 protected:
  static void expect_right_once_and_again(const Plan& plan) {
    auto executor = make_ready(plan);
    ASSERT_TRUE(executor.ok()) << render(executor.error());
    for (const std::int64_t iterations : {1, 5}) {
      const auto stats = (*executor)->run({.iterations = iterations});
      ASSERT_TRUE(stats.ok()) << render(stats.error());
      EXPECT_EQ(stats->iterations.size(), static_cast<std::size_t>(iterations));
      expect_right(**executor, plan, kBound);
    }
  }

  // Free bytes of the first GPU.
  static std::int64_t free_bytes() {
    const auto driver = cuda::open_driver().value();
    const auto device = cuda::Device::open(driver, cuda::DeviceId(0)).value();
    std::size_t free = 0;
    std::size_t total = 0;
    EXPECT_EQ(driver->cuMemGetInfo(&free, &total), CUDA_SUCCESS);
    return static_cast<std::int64_t>(free);
  }
};

TEST_F(Runs, give_what_the_program_means) {
  for (const std::int64_t ranks : {2, 4}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    expect_right_once_and_again(exchange(ranks, 1000, false));
    expect_right_once_and_again(exchange(ranks, 1000, true));
    expect_right_once_and_again(gather_gemm(ranks, 50, 37, 43, "f32"));
    expect_right_once_and_again(gather_gemm(ranks, 64, 64, 96, "f64"));
    expect_right_once_and_again(scatter_gemm(ranks, 50, 37, 43, "f32", false));
    expect_right_once_and_again(scatter_gemm(ranks, 50, 37, 43, "f32", true));
    expect_right_once_and_again(split_keys(ranks, 20, 30, true, "f32"));
  }
}

// Signal values grow for the whole life of an executor and are never reset.
TEST_F(Runs, follow_each_other_ten_thousand_times) {
  for (const Plan& plan : {gather_gemm(2, 64, 64, 64, "f32"), exchange(2, 4096, true)}) {
    auto executor = make_ready(plan);
    ASSERT_TRUE(executor.ok()) << render(executor.error());
    ASSERT_TRUE((*executor)->run({.iterations = 1}).ok());
    const std::string name = outputs_of(plan.program).front();
    const HostTensor first = (*executor)->output(name).value();
    const auto stats = (*executor)->run({.iterations = 10'000});
    ASSERT_TRUE(stats.ok()) << render(stats.error());
    const HostTensor last = (*executor)->output(name).value();
    EXPECT_EQ(first.data, last.data);
    expect_right(**executor, plan, kBound);
  }
}

// Outputs are poisoned first, so a right output shows that its executor has run.
TEST_F(Runs, of_several_executors_take_turns) {
  const Plan plan = gather_gemm(2, 64, 64, 64, "f32");
  std::array<std::unique_ptr<Executor>, 3> executors;
  for (auto& executor : executors) {
    auto made = make_ready(plan);
    ASSERT_TRUE(made.ok()) << render(made.error());
    executor = std::move(made).value();
  }
  const std::array others = {executors[1].get(), executors[2].get()};
  auto& first = dynamic_cast<TakesTurns&>(*executors[0]);
  const auto stats = first.run_in_turns(others, {.iterations = 7});
  ASSERT_TRUE(stats.ok()) << render(stats.error());
  EXPECT_EQ(stats->iterations.size(), 7U);
  for (const auto& executor : executors) expect_right(*executor, plan, kBound);
  const auto in_graph = first.time_in_graph(others, 8, std::chrono::milliseconds(10'000));
  ASSERT_TRUE(in_graph.ok()) << render(in_graph.error());
  EXPECT_GT(*in_graph, 0);
  for (const auto& executor : executors) expect_right(*executor, plan, kBound);
  ASSERT_TRUE(executors[1]->run({.iterations = 2}).ok());
  expect_right(*executors[1], plan, kBound);
}

// For every amount of free memory: each refusal is clean and leaves no memory behind.
TEST_F(Runs, need_memory_and_give_it_back) {
  const Plan plan = gather_gemm(2, 64, 64, 64, "f32");
  const Plan large = exchange(2, std::int64_t{1} << 27, false);  // 1.25 GiB per rank
  {
    const auto executor = make_ready(plan);
    ASSERT_TRUE(executor.ok()) << render(executor.error());
  }
  const std::int64_t before = free_bytes();
  const auto device = cuda::Device::open(cuda::open_driver().value(), cuda::DeviceId(0)).value();
  for (const std::int64_t left : {1, 4, 16, 64, 256, 1024}) {
    SCOPED_TRACE(std::to_string(left) + " MiB left");
    const auto full = cuda::DeviceMemory::allocate(device, before - (left << 20));
    if (!full.ok()) continue;  // the driver itself needs more than this
    const auto refused = make_ready(large);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, DiagCode::G073) << render(refused.error());
    auto executor = make_ready(plan);
    if (!executor.ok()) {
      const DiagCode code = executor.error().code;
      EXPECT_TRUE(code == DiagCode::G073 || code == DiagCode::G008 || code == DiagCode::G005)
          << render(executor.error());
      continue;
    }
    const auto stats = (*executor)->run({});
    EXPECT_TRUE(stats.ok()) << render(stats.error());
  }
  constexpr std::int64_t kDriversOwn = 64 << 20;  // the driver keeps stacks of kernels and the like
  EXPECT_GE(free_bytes(), before - kDriversOwn);
  expect_right_once_and_again(plan);
}

}  // namespace runs_test
}  // namespace harpe::test
