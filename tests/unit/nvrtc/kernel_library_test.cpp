#include "exec/cuda/jit/kernel_library.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/fake_driver.h"

namespace harpe::cuda {
namespace {

using testing_support::fake_gpu;
using testing_support::make_fake_driver;

KernelVariant variant_of(const std::string& name, const std::string& body) {
  return {
      .name = name,
      .family = "test",
      .tile = "",
      .source = "extern \"C\" __global__ void harpe_kernel(unsigned long long x) {" + body + "}",
      .threads = 96,
      .shared_bytes = 100 * 1024,
      .uses_wgmma = false};
}

// Compiles with NVRTC and loads into a driver without a GPU.
class Library : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<std::string> folders = {"/usr/local/cuda/lib64"};
    const auto compiler = Nvrtc::open(std::nullopt, folders);
    if (!compiler.ok()) GTEST_SKIP() << "skipped: " << render(compiler.error());
    const auto device = Device::open(make_fake_driver(), DeviceId(0));
    ASSERT_TRUE(device.ok());
    compiler_ = *compiler;
    library_ = std::make_unique<KernelLibrary>(*device, *compiler, std::nullopt);
  }

  [[nodiscard]] static std::ptrdiff_t count(const std::string& call) {
    return std::ranges::count(fake_gpu().calls, call);
  }

  std::optional<Nvrtc> compiler_;
  std::unique_ptr<KernelLibrary> library_;
};
using KernelsOfOneGpu = Library;

TEST_F(KernelsOfOneGpu, are_loaded_once_however_many_ask) {
  std::array<const LoadedKernel*, 4> seen{};
  {
    std::vector<std::jthread> crew;
    for (const LoadedKernel*& mine : seen) {
      crew.emplace_back([&] {
        const auto kernel = library_->load(variant_of("one", ""));
        ASSERT_TRUE(kernel.ok());
        mine = *kernel;
      });
    }
  }
  EXPECT_EQ(std::ranges::count(seen, seen.front()), 4);
  EXPECT_EQ(count("cuModuleLoadData"), 1);
  EXPECT_EQ(fake_gpu().shared_bytes, 100 * 1024);
  ASSERT_TRUE(library_->load(variant_of("other", "")).ok());
  library_.reset();
  EXPECT_EQ(count("cuModuleUnload"), 2);
}

TEST_F(KernelsOfOneGpu, that_do_not_compile_are_refused_and_may_be_asked_for_again) {
  const KernelVariant variant = variant_of("one", "no_such_name();");
  for (int time = 0; time < 2; ++time) {
    const auto kernel = library_->load(variant);
    ASSERT_FALSE(kernel.ok());
    EXPECT_EQ(kernel.error().code, DiagCode::G004);
  }
  EXPECT_EQ(count("cuModuleLoadData"), 0);
}

TEST_F(KernelsOfOneGpu, are_announced_where_they_are_compiled) {
  const std::string folder = testing::TempDir() + "harpe_announced_kernels";
  std::filesystem::remove_all(folder);
  for (const std::vector<std::string>& expected : {std::vector<std::string>{"one", "two"}, {}}) {
    std::vector<std::string> announced;
    KernelLibrary library(library_->device(), *compiler_, folder, device_headers(),
                          [&](std::string_view kernel) { announced.emplace_back(kernel); });
    for (const char* name : {"one", "two", "one"}) {
      ASSERT_TRUE(library.load(variant_of(name, "")).ok());
    }
    EXPECT_EQ(announced, expected);
  }
  std::filesystem::remove_all(folder);
}

TEST_F(KernelsOfOneGpu, have_names_of_their_own) {
  ASSERT_TRUE(library_->load(variant_of("one", "")).ok());
  EXPECT_THROW(static_cast<void>(library_->load(variant_of("one", ";"))), InternalError);
}

TEST_F(KernelsOfOneGpu, are_launched_with_their_shape_and_arguments) {
  const auto kernel = library_->load(variant_of("one", ""));
  ASSERT_TRUE(kernel.ok());
  const LaunchShape shape{.grid = {132, 2, 1}, .cluster = {2, 1, 1}};
  const std::uint64_t argument = 42;
  ASSERT_TRUE(launch(library_->device().driver(), **kernel, shape, nullptr, argument).ok());
  EXPECT_EQ(fake_gpu().launch.gridDimX, 132U);
  EXPECT_EQ(fake_gpu().launch.gridDimY, 2U);
  EXPECT_EQ(fake_gpu().launch.blockDimX, 96U);
  EXPECT_EQ(fake_gpu().launch.sharedMemBytes, 100U * 1024U);
  EXPECT_EQ(fake_gpu().cluster.id, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  EXPECT_EQ(fake_gpu().cluster.value.clusterDim.x, 2U);
  EXPECT_EQ(fake_gpu().argument, 42U);
}

}  // namespace
}  // namespace harpe::cuda
