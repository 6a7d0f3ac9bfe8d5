#include "exec/cuda/signals/peers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "exec/cuda/signals/signal_kernels.h"
#include "tests/support/fake_driver.h"

namespace harpe::cuda {
namespace {

using testing_support::fake_gpu;
using testing_support::make_fake_driver;

constexpr std::int64_t kMebibyte = 1024 * 1024;

Checked<Peers> open(const std::shared_ptr<const DriverApi>& driver, const std::vector<int>& gpus,
                    std::int64_t arena_bytes = 4096) {
  std::vector<Device> devices;
  for (const int gpu : gpus) {
    HP_TRY(Device device, Device::open(driver, DeviceId(gpu)));
    devices.push_back(std::move(device));
  }
  return Peers::open({.devices = std::move(devices), .arena_bytes = arena_bytes, .flags = 5});
}

TEST(Peers, each_have_an_arena_and_reach_every_other_gpu_once) {
  const auto driver = make_fake_driver();
  fake_gpu().devices = 2;
  const auto peers = open(driver, {0, 1, 0, 1});
  ASSERT_TRUE(peers.ok()) << render(peers.error());
  EXPECT_EQ(peers->ranks(), 4);
  EXPECT_TRUE(peers->is_own(3));
  EXPECT_EQ(peers->device(3).facts().id, DeviceId(1));
  const auto& calls = fake_gpu().calls;
  EXPECT_EQ(std::ranges::count(calls, "cuMemAlloc"), 8);
  EXPECT_EQ(std::ranges::count(calls, "cuCtxEnablePeerAccess"), 2);
}

TEST(Peers, that_cannot_reach_each_other_are_refused) {
  const auto driver = make_fake_driver();
  fake_gpu().devices = 2;
  fake_gpu().are_peers = false;
  EXPECT_TRUE(open(driver, {0, 0}).ok());
  const auto peers = open(driver, {0, 1});
  ASSERT_FALSE(peers.ok());
  EXPECT_EQ(peers.error().code, DiagCode::G071);
  EXPECT_EQ(render_message(peers.error()), "GPU 0 cannot access the memory of GPU 1");
}

TEST(Peers, that_share_a_gpu_need_memory_for_all) {
  const auto driver = make_fake_driver();
  fake_gpu().free_bytes = 10 * kMebibyte;
  EXPECT_TRUE(open(driver, {0}, 4 * kMebibyte).ok());
  const auto peers = open(driver, {0, 0, 0}, 4 * kMebibyte);
  ASSERT_FALSE(peers.ok());
  EXPECT_EQ(peers.error().code, DiagCode::G073);
  EXPECT_EQ(render_message(peers.error()),
            "this plan needs 13 MiB on GPU 0, and 10 MiB are free there");
}

TEST(SignalPage, gives_every_signal_a_line_of_its_own) {
  const auto device = Device::open(make_fake_driver(), DeviceId(0));
  ASSERT_TRUE(device.ok());
  auto page = SignalPage::create(*device, {.flags = 3});
  ASSERT_TRUE(page.ok());
  const SignalAddresses& at = page->addresses();
  EXPECT_EQ(at.ended(), 512U);
  EXPECT_EQ(at.epoch(), 516U);
  EXPECT_EQ(at.poison(), 640U);
  EXPECT_EQ(at.flag(0), 768U);
  EXPECT_EQ(at.flag(2), 1024U);
  EXPECT_EQ(page->memory().bytes(), 5 * 128);
  EXPECT_EQ(wait_on(at, 2, 7).wait.name, 2U);
  EXPECT_EQ(counter_of(at, 1).added, 1U);
}

TEST(SignalPage, tells_who_waits_in_the_signal_behind_the_poison) {
  const auto device = Device::open(make_fake_driver(), DeviceId(0));
  ASSERT_TRUE(device.ok());
  const auto page = SignalPage::create(*device, {.flags = 1});
  const auto aside = Stream::create(*device);
  ASSERT_TRUE(page.ok() && aside.ok());
  EXPECT_FALSE(testing_support::is_told());
  ASSERT_TRUE(page->give_up(*aside).ok());
  EXPECT_TRUE(testing_support::is_told());
  EXPECT_EQ(fake_gpu().argument, page->addresses().poison() + 4);
  EXPECT_EQ(page->addresses().poison() % 8, 0U) << "both are read at once";
}

// Here the record is host memory, written as a kernel writes it.
TEST(SignalPage, shows_a_fault_once_its_state_is_stored_until_it_is_cleared) {
  const auto device = Device::open(make_fake_driver(), DeviceId(0));
  ASSERT_TRUE(device.ok());
  auto page = SignalPage::create(*device, {.flags = 1});
  ASSERT_TRUE(page.ok());
  device::FaultRecord* const record = page->context(std::chrono::nanoseconds(5)).fault;
  record->name = 4;
  record->seen = 9;
  EXPECT_FALSE(page->fault().has_value());
  record->state = 1;
  ASSERT_TRUE(page->fault().has_value());
  EXPECT_EQ(page->fault()->name, 4U);
  EXPECT_EQ(page->fault()->seen, 9U);
  ASSERT_TRUE(page->clear().ok());
  EXPECT_FALSE(page->fault().has_value());
}

}  // namespace
}  // namespace harpe::cuda
