#include <gtest/gtest.h>

#include <cstring>
#include <span>

#include "exec/cuda/jit/kernel_library.h"
#include "exec/cuda/runtime/device_memory.h"

namespace harpe::cuda {
namespace {

constexpr int kElements = 1000;

struct Arguments {
  DeviceAddress out;
  DeviceAddress report;
  std::uint32_t count;
};

// Fills `out` with squares, with more shared memory than a kernel has by default, and reports.
const KernelVariant kSquares{.name = "squares",
                             .family = "test",
                             .tile = "",
                             .source = R"(
struct Arguments { unsigned long long out; unsigned long long report; unsigned count; };
extern __shared__ unsigned memory[];
extern "C" __global__ void harpe_kernel(const __grid_constant__ Arguments arguments) {
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  memory[20000 + threadIdx.x] = at * at;
  if (at < arguments.count) {
    reinterpret_cast<unsigned*>(arguments.out)[at] = memory[20000 + threadIdx.x];
  }
  if (at == 0) {
    unsigned clusters;
    asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(clusters));
    *reinterpret_cast<unsigned*>(arguments.report) = clusters;
  }
})",
                             .threads = 128,
                             .shared_bytes = 100 * 1024,
                             .uses_wgmma = false};

// Tests that need a GPU; CTest counts the program as skipped without one.
class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    const auto driver = open_driver();
    if (!driver.ok()) GTEST_SKIP() << "skipped: " << render(driver.error());
    const std::vector<std::string> folders = {"/usr/local/cuda/lib64"};
    const auto compiler = Nvrtc::open(std::nullopt, folders);
    if (!compiler.ok()) GTEST_SKIP() << "skipped: " << render(compiler.error());
    auto device = Device::open(*driver, DeviceId(0));
    ASSERT_TRUE(device.ok()) << render(device.error());
    library_ = std::make_unique<KernelLibrary>(*device, *compiler, std::nullopt);
  }
  [[nodiscard]] const Device& device() const { return library_->device(); }
  [[nodiscard]] const DriverApi& driver() const { return device().driver(); }

  std::unique_ptr<KernelLibrary> library_;
};
using Runtime = OnGpu;

TEST_F(Runtime, runs_a_kernel_in_clusters_and_times_it) {
  const auto kernel = library_->load(kSquares);
  ASSERT_TRUE(kernel.ok()) << render(kernel.error());
  EXPECT_EQ((*kernel)->blocks_per_multiprocessor, 2);
  const auto stream = Stream::create(device(), true);
  const auto out = DeviceMemory::allocate(device(), kElements * 4);
  const auto report = MappedMemory::allocate(device(), 4);
  const auto start = Event::create(device());
  const auto end = Event::create(device());
  ASSERT_TRUE(stream.ok() && out.ok() && report.ok() && start.ok() && end.ok());

  const Arguments arguments{.out = out->address(), .report = report->address(), .count = kElements};
  ASSERT_TRUE(start->record(*stream).ok());
  const LaunchShape shape{.grid = {8, 1, 1}, .cluster = {2, 1, 1}};
  ASSERT_TRUE(launch(driver(), **kernel, shape, stream->handle(), arguments).ok());
  ASSERT_TRUE(end->record(*stream).ok());
  std::vector<std::uint32_t> squares(kElements);
  ASSERT_TRUE(driver_call(driver(), "cuMemcpyDtoHAsync",
                          driver().cuMemcpyDtoHAsync(squares.data(), out->address(), kElements * 4,
                                                     stream->handle()))
                  .ok());
  const auto synchronized = stream->synchronize();
  ASSERT_TRUE(synchronized.ok()) << render(to_diag(synchronized.error()));
  for (std::uint32_t at = 0; at < kElements; ++at) ASSERT_EQ(squares[at], at * at);
  std::uint32_t clusters = 0;
  std::memcpy(&clusters, report->host().data(), sizeof(clusters));
  EXPECT_EQ(clusters, 2U);
  const auto time = end->milliseconds_since(*start);
  ASSERT_TRUE(time.ok());
  EXPECT_GT(*time, 0);
}

TEST_F(Runtime, places_zeros_and_copies) {
  std::vector<std::uint32_t> values(kElements);
  for (std::uint32_t at = 0; at < kElements; ++at) values[at] = at * 3 + 1;
  const auto copy = DeviceMemory::copy_of(device(), std::as_bytes(std::span(values)));
  const auto zeros = DeviceMemory::zeros(device(), kElements);
  ASSERT_TRUE(copy.ok() && zeros.ok());
  const auto read = [&](const DeviceMemory& memory) {
    std::vector<std::uint32_t> back(kElements, 7);
    EXPECT_TRUE(driver_call(driver(), "cuMemcpyDtoHAsync",
                            driver().cuMemcpyDtoHAsync(back.data(), memory.address(), kElements * 4,
                                                       nullptr))
                    .ok());
    EXPECT_TRUE(
        driver_call(driver(), "cuStreamSynchronize", driver().cuStreamSynchronize(nullptr)).ok());
    return back;
  };
  EXPECT_EQ(read(*copy), values);
  EXPECT_EQ(read(*zeros), std::vector<std::uint32_t>(kElements, 0));
}

TEST_F(Runtime, tells_what_a_refused_launch_was) {
  const auto kernel = library_->load(kSquares);
  ASSERT_TRUE(kernel.ok());
  const LaunchShape shape{.grid = {7, 1, 1}, .cluster = {2, 1, 1}};
  const auto refused = launch(driver(), **kernel, shape, nullptr, Arguments{});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().call, "cuLaunchKernelEx");
  EXPECT_FALSE(refused.error().name.empty());
}

TEST_F(Runtime, knows_how_many_gpus_there_are) {
  const auto count = count_devices(driver());
  ASSERT_TRUE(count.ok());
  const auto beyond = Device::open(*open_driver(), DeviceId(*count));
  ASSERT_FALSE(beyond.ok());
  EXPECT_EQ(beyond.error().code, DiagCode::G007);
}

}  // namespace
}  // namespace harpe::cuda
