#include "tests/gpu/actions/on_gpu.h"

#include <cstdlib>

#include "exec/cpu/run_action.h"
#include "exec/cuda/kernels/batch.h"
#include "exec/cuda/runtime/device_memory.h"

namespace harpe::testing_support {
namespace {

constexpr std::size_t kAlignment = 512;  // as on GPUs, so that both choose the same paths

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};

}  // namespace

void OnGpu::SetUp() {
  const auto driver = cuda::open_driver();
  if (!driver.ok()) GTEST_SKIP() << "skipped: " << render(driver.error());
  const std::vector<std::string> folders = {"/usr/local/cuda/lib64"};
  const auto compiler = cuda::Nvrtc::open(std::nullopt, folders);
  if (!compiler.ok()) GTEST_SKIP() << "skipped: " << render(compiler.error());
  auto device = cuda::Device::open(*driver, cuda::DeviceId(0));
  ASSERT_TRUE(device.ok()) << render(device.error());
  library_ = std::make_unique<cuda::KernelLibrary>(*device, *compiler, std::nullopt);
}

std::vector<std::byte> OnGpu::run_on_host(const Arena& arena,
                                          std::span<const MakeAction> all) const {
  std::vector<std::byte> bytes = arena.bytes();
  const std::size_t size = (bytes.size() + kAlignment - 1) / kAlignment * kAlignment;
  const std::unique_ptr<std::byte, Free> memory(
      static_cast<std::byte*>(std::aligned_alloc(kAlignment, size)));
  std::ranges::copy(bytes, memory.get());
  actions::TaskWork work;
  for (const MakeAction& make : all) work.actions.push_back(make(memory.get()));
  cpu::run(work);
  std::copy_n(memory.get(), bytes.size(), bytes.begin());
  return bytes;
}

OnGpu::Outcome OnGpu::run_on_gpu(const Arena& arena, std::span<const MakeAction> all,
                                 bool by_copy_engine) {
  const cuda::Device& device = library_->device();
  const auto memory = cuda::DeviceMemory::copy_of(device, arena.bytes());
  const auto stream = cuda::Stream::create(device);
  EXPECT_TRUE(memory.ok() && stream.ok());
  if (!memory.ok() || !stream.ok()) return {};
  const int multiprocessors = device.facts().multiprocessors;
  const cuda::LaunchChoice choice{.nest = "nest",
                                  .buffer = "buffer",
                                  .by_copy_engine = by_copy_engine,
                                  .multiprocessors = multiprocessors};
  Outcome outcome;
  for (const MakeAction& make : all) {
    const actions::Action action = make(reinterpret_cast<std::byte*>(memory->address()));
    const auto specs = cuda::plan_launches(choice, action);
    EXPECT_TRUE(specs.ok()) << render(specs.error());
    if (!specs.ok()) return {};
    outcome.launches.insert(outcome.launches.end(), specs->begin(), specs->end());
  }
  outcome.launches = cuda::batched(std::move(outcome.launches), multiprocessors);
  cuda::Launches launches;
  for (const cuda::LaunchSpec& spec : outcome.launches) {
    const auto added =
        launches.add({.kernels = *library_, .multiprocessors = multiprocessors}, spec);
    EXPECT_TRUE(added.ok()) << render(added.error());
  }
  EXPECT_TRUE(launches.enqueue(stream->handle()).ok());
  outcome.bytes.resize(arena.bytes().size());
  EXPECT_TRUE(
      cuda::driver_call(device.driver(), "cuMemcpyDtoHAsync",
                        device.driver().cuMemcpyDtoHAsync(outcome.bytes.data(), memory->address(),
                                                          outcome.bytes.size(), stream->handle()))
          .ok());
  const auto done = stream->synchronize();
  EXPECT_TRUE(done.ok()) << render(to_diag(done.error()));
  return outcome;
}

std::vector<cuda::LaunchSpec> OnGpu::check(Arena& arena, const MakeAction& make,
                                           bool by_copy_engine) {
  const std::span<const MakeAction> one(&make, 1);
  Outcome outcome = run_on_gpu(arena, one, by_copy_engine);
  EXPECT_EQ(arena.compare(run_on_host(arena, one), outcome.bytes), "");
  return std::move(outcome.launches);
}

}  // namespace harpe::testing_support
