#include "exec/cuda/runtime/device.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "exec/cuda/runtime/device_memory.h"
#include "exec/cuda/runtime/free_memory.h"
#include "exec/cuda/runtime/host_memory.h"
#include "tests/support/fake_driver.h"

namespace harpe::cuda {
namespace {

using testing_support::fake_gpu;
using testing_support::make_fake_driver;
using Calls = std::vector<std::string>;

TEST(Driver, that_is_nowhere_is_refused) {
  const auto driver = open_driver("libno-such-driver.so");
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.error().code, DiagCode::G002);
}

TEST(Driver, that_is_another_library_is_refused) {
  const auto driver = open_driver("libc.so.6");
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(render_message(driver.error()), "`libc.so.6` lacks `cuGetProcAddress_v2`");
}

TEST(Device, keeps_its_context_until_its_last_copy_is_gone) {
  {
    const auto device = Device::open(make_fake_driver(), DeviceId(0));
    ASSERT_TRUE(device.ok());
    EXPECT_EQ(device->facts().name, "Fake GPU");
    EXPECT_EQ(device->facts().multiprocessors, 132);
    const auto copy = std::make_unique<Device>(*device);
    EXPECT_EQ(fake_gpu().calls, Calls{"cuDevicePrimaryCtxRetain"});
  }
  EXPECT_EQ(fake_gpu().calls, (Calls{"cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease"}));
}

TEST(Device, is_one_that_is_there) {
  const auto device = Device::open(make_fake_driver(), DeviceId(1));
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code, DiagCode::G007);
  EXPECT_EQ(render_message(device.error()), "there is no GPU 1: this machine has 1");
}

TEST(Device, is_one_the_kernels_are_for) {
  const auto driver = make_fake_driver();
  fake_gpu().compute_major = 8;
  const auto device = Device::open(driver, DeviceId(0));
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code, DiagCode::G006);
  EXPECT_EQ(render_message(device.error()),
            "`Fake GPU` cannot run Harpe's kernels: its compute capability is 8.0");
}

// No other test divides GPU 7: parts stay open.
TEST(Device, is_divided_between_ranks_that_share_it) {
  const auto driver = make_fake_driver();
  fake_gpu().devices = 8;
  const auto open = [&](int index, int parts) {
    return Device::open(driver, GpuPart{.gpu = DeviceId(7), .index = index, .parts = parts});
  };
  const auto whole = open(0, 1);
  const auto first = open(0, 2);
  const auto second = open(1, 2);
  const auto again = open(0, 2);
  const auto quarter = open(3, 4);
  ASSERT_TRUE(whole.ok() && first.ok() && second.ok() && again.ok() && quarter.ok());
  EXPECT_EQ(whole->facts().multiprocessors, 132);
  EXPECT_EQ(first->facts().multiprocessors, 64);
  EXPECT_EQ(quarter->facts().multiprocessors, 32);
  EXPECT_NE(first->context(), whole->context());
  EXPECT_NE(first->context(), second->context());
  EXPECT_EQ(first->context(), again->context());
  EXPECT_EQ(std::ranges::count(fake_gpu().calls, "cuGreenCtxCreate"), 3);
}

TEST(Device, is_not_divided_by_an_older_driver_or_without_memory) {
  const GpuPart half{.gpu = DeviceId(6), .index = 0, .parts = 2};
  cuda::DriverApi old = *make_fake_driver();
  fake_gpu().devices = 8;
  old.cuGreenCtxCreate = nullptr;
  const auto refused = Device::open(std::make_shared<const DriverApi>(old), half);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, DiagCode::G076);
  EXPECT_EQ(render_message(refused.error()), "the driver cannot divide GPU 6 into 2 parts");
  const auto driver = make_fake_driver();
  fake_gpu().devices = 8;
  fake_gpu().allocation = CUDA_ERROR_OUT_OF_MEMORY;
  const auto full = Device::open(driver, half);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, DiagCode::G008);
}

TEST(DeviceMemory, is_freed_once_wherever_it_was_moved) {
  const auto device = Device::open(make_fake_driver(), DeviceId(0));
  ASSERT_TRUE(device.ok());
  fake_gpu().calls.clear();
  {
    auto memory = DeviceMemory::allocate(*device, 64);
    ASSERT_TRUE(memory.ok());
    DeviceMemory moved = std::move(memory).value();
    EXPECT_EQ(moved.address(), 512U);
    moved = DeviceMemory(std::move(moved));
  }
  EXPECT_EQ(fake_gpu().calls, (Calls{"cuMemAlloc", "cuMemFree"}));
}

TEST(DeviceMemory, is_counted_by_all_copies_of_its_device) {
  const auto device = Device::open(make_fake_driver(), DeviceId(0));
  ASSERT_TRUE(device.ok());
  const Device copy = *device;
  {
    const auto memory = DeviceMemory::allocate(copy, 64);
    auto other = DeviceMemory::allocate(*device, 16);
    ASSERT_TRUE(memory.ok() && other.ok());
    EXPECT_EQ(device->allocated_bytes(), 80);
    const DeviceMemory moved = std::move(other).value();
    EXPECT_EQ(copy.allocated_bytes(), 80);
  }
  EXPECT_EQ(copy.allocated_bytes(), 0);
  const auto other = Device::open(make_fake_driver(), DeviceId(0));
  const auto memory = DeviceMemory::allocate(*device, 64);
  EXPECT_EQ(other->allocated_bytes(), 0);
}

TEST(FreeMemory, is_read_from_each_gpu) {
  const auto driver = make_fake_driver();
  fake_gpu().devices = 2;
  const auto memory = FreeMemory::watch(driver, 2);
  ASSERT_TRUE(memory.ok());
  fake_gpu().free_bytes = 1000;
  const auto read = memory->read();
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, (std::vector<std::int64_t>{1000, 1000}));
  EXPECT_FALSE(FreeMemory::watch(driver, 3).ok());
}

TEST(PinnedMemory, is_let_go_of_once) {
  const auto device = Device::open(make_fake_driver(), DeviceId(0));
  ASSERT_TRUE(device.ok());
  fake_gpu().calls.clear();
  const std::vector<std::byte> bytes(kLeastPinned);
  {
    auto pinned = PinnedMemory::pin(*device, bytes);
    ASSERT_TRUE(pinned.ok());
    const PinnedMemory moved = std::move(pinned).value();
    EXPECT_EQ(address_of_pinned(*device, bytes), reinterpret_cast<DeviceAddress>(bytes.data()));
  }
  // Threads of earlier tests may still release their GPUs.
  Calls about_memory = fake_gpu().calls;
  std::erase(about_memory, "cuDevicePrimaryCtxRelease");
  EXPECT_EQ(about_memory, (Calls{"cuMemHostRegister", "cuMemHostUnregister"}));
  // Memory that may share its pages is refused without a call to the driver.
  EXPECT_FALSE(address_of_pinned(*device, std::span(bytes).first(kLeastPinned - 1)).has_value());
}

TEST(DeviceMemory, that_is_not_there_is_told_with_the_gpu_and_the_place) {
  const auto device = Device::open(make_fake_driver(), DeviceId(0));
  ASSERT_TRUE(device.ok());
  fake_gpu().allocation = CUDA_ERROR_OUT_OF_MEMORY;
  const auto memory = DeviceMemory::allocate(*device, 64);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().code, DiagCode::G008);
  EXPECT_EQ(render_message(memory.error()), "GPU 0 has no memory left for 64 bytes");
  ASSERT_EQ(memory.error().notes.size(), 1U);
  EXPECT_TRUE(memory.error().notes.front().starts_with("called in device_memory.cpp:"));
}

TEST(DeviceMemory, that_fails_otherwise_is_told_with_the_call_and_its_place) {
  const auto device = Device::open(make_fake_driver(), DeviceId(0));
  ASSERT_TRUE(device.ok());
  fake_gpu().allocation = CUDA_ERROR_DEINITIALIZED;
  const auto memory = DeviceMemory::allocate(*device, 64);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().code, DiagCode::G005);
  EXPECT_EQ(
      render_message(memory.error()),
      "call `cuMemAlloc` of the CUDA driver failed with CUDA_ERROR_OUT_OF_MEMORY: out of memory");
  ASSERT_EQ(memory.error().notes.size(), 1U);
  EXPECT_TRUE(memory.error().notes.front().starts_with("called in device_memory.cpp:"));
}

}  // namespace
}  // namespace harpe::cuda
