#include <atomic>

#include "exec/cuda/runtime/device_memory.h"
#include "tests/gpu/executor/gpu_fixture.h"

namespace harpe::test {
namespace {

// The real driver, except that one of its allocating calls fails for lack of memory. Driver
// functions carry no user data, so the state is one per process.
struct Scarce {
  std::shared_ptr<const cuda::DriverApi> driver;
  std::atomic<int> taken{0};
  int refuse_at = -1;
};
Scarce& scarce() {
  static Scarce one;
  return one;
}
bool is_refused() { return scarce().taken++ == scarce().refuse_at; }

std::shared_ptr<const cuda::DriverApi> scarce_driver(int refuse_at) {
  scarce().driver = cuda::open_driver().value();
  scarce().taken = 0;
  scarce().refuse_at = refuse_at;
  cuda::DriverApi api = *scarce().driver;
  api.cuMemAlloc = [](CUdeviceptr* address, std::size_t bytes) {
    return is_refused() ? CUDA_ERROR_OUT_OF_MEMORY : scarce().driver->cuMemAlloc(address, bytes);
  };
  api.cuMemHostAlloc = [](void** host, std::size_t bytes, unsigned flags) {
    return is_refused() ? CUDA_ERROR_OUT_OF_MEMORY
                        : scarce().driver->cuMemHostAlloc(host, bytes, flags);
  };
  api.cuModuleLoadData = [](CUmodule* module, const void* image) {
    return is_refused() ? CUDA_ERROR_OUT_OF_MEMORY
                        : scarce().driver->cuModuleLoadData(module, image);
  };
  api.cuStreamCreateWithPriority = [](CUstream* stream, unsigned flags, int priority) {
    return is_refused() ? CUDA_ERROR_OUT_OF_MEMORY
                        : scarce().driver->cuStreamCreateWithPriority(stream, flags, priority);
  };
  api.cuEventCreate = [](CUevent* event, unsigned flags) {
    return is_refused() ? CUDA_ERROR_OUT_OF_MEMORY : scarce().driver->cuEventCreate(event, flags);
  };
  api.cuGraphInstantiateWithFlags = [](CUgraphExec* graph, CUgraph from, unsigned long long flags) {
    return is_refused() ? CUDA_ERROR_OUT_OF_MEMORY
                        : scarce().driver->cuGraphInstantiateWithFlags(graph, from, flags);
  };
  return std::make_shared<const cuda::DriverApi>(api);
}

std::int64_t free_bytes() {
  const auto driver = cuda::open_driver().value();
  const auto device = cuda::Device::open(driver, cuda::DeviceId(0)).value();
  std::size_t free = 0;
  std::size_t total = 0;
  EXPECT_EQ(driver->cuMemGetInfo(&free, &total), CUDA_SUCCESS);
  return static_cast<std::int64_t>(free);
}

// Runs the plan once. Returns the refusal, or nothing.
std::string attempt(const Plan& plan, std::shared_ptr<const cuda::DriverApi> driver) {
  auto executor = make_ready(plan, {.driver = std::move(driver)});
  if (!executor.ok()) return render(executor.error());
  const auto stats = (*executor)->run({.iterations = 2});
  if (!stats.ok()) return render(stats.error());
  for (const std::string& name : outputs_of(plan.program)) {  // reading outputs makes streams
    const auto output = (*executor)->output(name);
    if (!output.ok()) return render(output.error());
  }
  scarce().refuse_at = -1;
  expect_right(**executor, plan, 1e-4);
  return "";
}

using Memory = OnGpus;

// One per attempt: each of the first 24 allocations fails, for arenas and kernels, then every 7th.
TEST_F(Memory, that_ends_while_a_plan_is_made_ready_is_told_and_all_given_back) {
  constexpr int kAll = 24;
  constexpr int kStep = 7;
  const Plan plan = gather_gemm(2, 64, 64, 64, "f32");
  ASSERT_EQ(attempt(plan, nullptr), "");
  const std::int64_t before = free_bytes();
  int refused = 0;
  for (int at = 0;; at += at < kAll ? 1 : kStep) {
    SCOPED_TRACE("the " + std::to_string(at) + "th is refused");
    ASSERT_LT(at, 10'000);
    const std::string text = attempt(plan, scarce_driver(at));
    if (text.empty()) break;
    EXPECT_TRUE(text.find("has no memory left for") != std::string::npos ||
                text.find("CUDA_ERROR_OUT_OF_MEMORY") != std::string::npos)
        << text;
    ++refused;
  }
  EXPECT_GT(refused, kAll);
  constexpr std::int64_t kDriversOwn = 64 << 20;  // the driver keeps stacks of kernels and the like
  EXPECT_GE(free_bytes(), before - kDriversOwn);
  EXPECT_EQ(attempt(plan, nullptr), "");
}

}  // namespace
}  // namespace harpe::test
