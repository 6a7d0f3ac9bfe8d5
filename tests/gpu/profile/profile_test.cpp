#include <gtest/gtest.h>

#include <algorithm>

#include "compile/launches.h"
#include "compile/session.h"
#include "ir/tensor.h"
#include "profile/profile_gpu.h"
#include "run/backend.h"
#include "sim/simulate.h"
#include "tests/support/cuda_executor.h"

namespace harpe::test {
namespace {

constexpr std::int64_t kSize = 8192;

class Profile : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = missing_for_gpus()) GTEST_SKIP() << "skipped: " << *missing;
  }
};

CudaPlaces places() {
  return {.nvrtc = {},
          .cuda_folders = {"/usr/local/cuda/lib64"},
          .library_folders = {},
          .kernel_cache = kernel_folder()};
}

// The full GEMM on one rank.
Checked<Plan> cube() {
  Session session(false);
  const std::string size = std::to_string(kSize);
  return session.plan(
      {.target = "gemm", .parameters = {"m=" + size, "n=" + size, "k=" + size}, .mesh = "r=1"});
}

// Seconds per execution, the median of several.
double run(const Plan& plan) {
  Checked<std::unique_ptr<Executor>> executor =
      make_executor(plan, {.backend = Backend::Cuda, .places = places()});
  EXPECT_TRUE(executor.ok()) << (executor.ok() ? "" : render(executor.error()));
  if (!executor.ok()) return 0;
  for (const char* const name : {"a", "b"}) {
    const HostTensor drawn = random_tensor(DType::BF16, {kSize, kSize}, 1, name);
    EXPECT_TRUE((*executor)->set_input(name, drawn).ok());
  }
  EXPECT_TRUE((*executor)->run({.iterations = 5}).ok());
  const auto stats = (*executor)->run({.iterations = 21});
  EXPECT_TRUE(stats.ok());
  if (!stats.ok()) return 0;
  std::vector<std::chrono::nanoseconds> times = stats->iterations;
  std::ranges::sort(times);
  return std::chrono::duration<double>(times[times.size() / 2]).count();
}

TEST_F(Profile, of_one_gpu_says_how_long_a_product_takes) {
  const auto profile = profile_gpus({.gpus = 1, .places = places()});
  ASSERT_TRUE(profile.ok()) << render(profile.error());
  const Machine& machine = profile->machine;
  EXPECT_TRUE(check_machine(machine).ok());
  const Checked<Machine> again = parse_machine(print(machine), "gpu.machine");
  ASSERT_TRUE(again.ok()) << render(again.error());
  EXPECT_EQ(*again, machine);
  const Checked<Plan> plan = cube();
  ASSERT_TRUE(plan.ok()) << render(plan.error());
  const double said = simulate(*plan, launches_on(*plan, machine), machine)->total.seconds();
  EXPECT_NEAR(said / run(*plan), 1, 0.25) << said;
}

TEST_F(Profile, of_two_gpus_has_links) {
  const auto profile = profile_gpus({.gpus = 2, .quick = true, .places = places()});
  if (!profile.ok() && profile.error().code == DiagCode::G070) {
    GTEST_SKIP() << render(profile.error());
  }
  ASSERT_TRUE(profile.ok()) << render(profile.error());
  const Machine& machine = profile->machine;
  EXPECT_EQ(machine.processors(), 2);
  EXPECT_EQ(machine.collectives.size(), 6U);
  for (const TransportRate& one : machine.transports) {
    // A rate of NVLink: far above any host's bus and below memory.
    EXPECT_GT(one.bandwidth, 50e9) << one.via;
    EXPECT_LT(one.bandwidth, machine.processor.memory_bandwidth) << one.via;
    EXPECT_LE(one.bandwidth, machine.levels.front().bandwidth) << one.via;
  }
  EXPECT_GT(machine.levels.front().latency, machine.processor.kernel_start);
  EXPECT_GT(profile->figures.interference->product, 0.3);
  EXPECT_LT(profile->figures.interference->product, 1.1);
}

}  // namespace
}  // namespace harpe::test
