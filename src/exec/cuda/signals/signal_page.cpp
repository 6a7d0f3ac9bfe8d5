#include "exec/cuda/signals/signal_page.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "exec/cuda/runtime/current_device.h"

namespace harpe::cuda {

DeviceAddress SignalAddresses::flag(std::int32_t index) const {
  HP_CHECK(index >= 0 && index < flags, "no such flag in the page");
  return base + static_cast<DeviceAddress>((index + 2) * kLine);
}

Checked<SignalPage> SignalPage::create(const Device& device, const Sizes& sizes) {
  const std::int64_t used = SignalAddresses::bytes_for(sizes.flags, sizes.inbox_bytes);
  const std::int64_t whole = std::max(sizes.least_bytes, used);
  HP_TRY(DeviceMemory words, DeviceMemory::zeros(device, (whole + 3) / 4));
  HP_TRY(MappedMemory record, MappedMemory::allocate(device, sizeof(device::FaultRecord)));
  const SignalAddresses addresses{.base = words.address(), .flags = sizes.flags};
  SignalPage page(device, std::move(words), std::move(record), addresses, sizes.inbox_bytes);
  HP_REQUIRE_OK(page.empty_inbox());
  return page;
}

device::WaitContext SignalPage::context(std::chrono::nanoseconds limit, std::uint32_t task) const {
  return {.epoch = reinterpret_cast<const std::uint32_t*>(addresses_.epoch()),
          .ahead = 0,
          .poison = reinterpret_cast<std::uint32_t*>(addresses_.poison()),
          .fault = reinterpret_cast<device::FaultRecord*>(record_.address()),
          .limit_ns = static_cast<std::uint64_t>(limit.count()),
          .task = task,
          .sightings = nullptr,
          .notes = nullptr};
}

Result<Ok, CudaError> SignalPage::give_up(const Stream& aside) const {
  const CurrentDevice current(device_);
  const DriverApi& driver = device_.driver();
  return cuda_call(driver, "cuStreamWriteValue32",
                   driver.cuStreamWriteValue32(aside.handle(), addresses_.told(), 1,
                                               CU_STREAM_WRITE_VALUE_DEFAULT));
}

device::FaultRecord& SignalPage::record() const {
  return *reinterpret_cast<device::FaultRecord*>(record_.host().data());
}

bool SignalPage::has_fault() const {
  return std::atomic_ref(record().state).load(std::memory_order_acquire) != 0;
}

bool SignalPage::is_stopped() const {
  return std::atomic_ref(record().is_stopped).load(std::memory_order_acquire) != 0;
}

std::optional<device::FaultRecord> SignalPage::fault() const {
  if (!has_fault()) return std::nullopt;
  return record();
}

Checked<bool> SignalPage::is_poisoned() const {
  const CurrentDevice current(device_);
  const DriverApi& driver = device_.driver();
  std::uint32_t word = 0;
  HP_REQUIRE_OK(
      driver_call(driver, "cuMemcpyDtoHAsync",
                  driver.cuMemcpyDtoHAsync(&word, addresses_.poison(), sizeof(word), nullptr)));
  HP_REQUIRE_OK(driver_call(driver, "cuStreamSynchronize", driver.cuStreamSynchronize(nullptr)));
  return word != 0;
}

Checked<Ok> SignalPage::clear() { return start_at(0); }

Checked<Ok> SignalPage::start_at(std::uint32_t epoch, std::span<const std::uint32_t> arrivals) {
  constexpr std::size_t kWords = SignalAddresses::kLine / sizeof(std::uint32_t);
  std::vector<std::uint32_t> image(static_cast<std::size_t>(addresses_.flags + 2) * kWords, 0);
  image[1] = epoch;
  for (std::size_t index = 0; index < static_cast<std::size_t>(addresses_.flags); ++index) {
    image[(index + 2) * kWords] = epoch * (index < arrivals.size() ? arrivals[index] : 1);
  }
  std::ranges::fill(record_.host(), std::byte{0});
  const CurrentDevice current(device_);
  const DriverApi& driver = device_.driver();
  HP_REQUIRE_OK(driver_call(driver, "cuMemcpyHtoDAsync",
                            driver.cuMemcpyHtoDAsync(addresses_.base, image.data(),
                                                     image.size() * sizeof(image[0]), nullptr)));
  HP_REQUIRE_OK(driver_call(driver, "cuStreamSynchronize", driver.cuStreamSynchronize(nullptr)));
  return empty_inbox();
}

// Fills the inbox with the bits of device::kAbsent.
Checked<Ok> SignalPage::empty_inbox() {
  if (inbox_bytes_ == 0) return Ok{};
  const CurrentDevice current(device_);
  const DriverApi& driver = device_.driver();
  HP_REQUIRE_OK(
      driver_call(driver, "cuMemsetD8Async",
                  driver.cuMemsetD8Async(addresses_.inbox(), 0xff,
                                         static_cast<std::size_t>(inbox_bytes_), nullptr)));
  return driver_call(driver, "cuStreamSynchronize", driver.cuStreamSynchronize(nullptr));
}

}  // namespace harpe::cuda
