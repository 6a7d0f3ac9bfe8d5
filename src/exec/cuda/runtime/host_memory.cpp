#include "exec/cuda/runtime/host_memory.h"

#include <utility>

#include "exec/cuda/runtime/current_device.h"
#include "support/check.h"

namespace harpe::cuda {

Checked<PinnedMemory> PinnedMemory::pin(const Device& device, std::span<const std::byte> bytes) {
  constexpr std::size_t kPage = 4096;
  const bool is_whole_pages =
      reinterpret_cast<std::uintptr_t>(bytes.data()) % kPage == 0 && bytes.size() % kPage == 0;
  HP_CHECK(is_whole_pages || bytes.size() >= kLeastPinned,
           "memory that is pinned has pages of its own");
  const CurrentDevice current(device);
  auto* const host = const_cast<std::byte*>(bytes.data());
  HP_REQUIRE_OK(driver_call(
      device.driver(), "cuMemHostRegister",
      device.driver().cuMemHostRegister(
          host, bytes.size(), CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP)));
  PinnedMemory memory(device, host);
  CUdeviceptr address = 0;
  HP_REQUIRE_OK(driver_call(device.driver(), "cuMemHostGetDevicePointer",
                            device.driver().cuMemHostGetDevicePointer(&address, host, 0)));
  memory.address_ = address;
  return memory;
}

PinnedMemory::PinnedMemory(PinnedMemory&& other) noexcept
    : device_(other.device_),
      host_(std::exchange(other.host_, nullptr)),
      address_(other.address_) {}

PinnedMemory::~PinnedMemory() {
  if (host_ == nullptr) return;
  const CurrentDevice current(device_);
  device_.driver().cuMemHostUnregister(host_);
}

std::optional<DeviceAddress> address_of_pinned(const Device& device,
                                               std::span<const std::byte> bytes) {
  if (bytes.size() < kLeastPinned) return std::nullopt;
  const CurrentDevice current(device);
  CUdeviceptr address = 0;
  const CUresult status =
      device.driver().cuMemHostGetDevicePointer(&address, const_cast<std::byte*>(bytes.data()), 0);
  if (status != CUDA_SUCCESS) return std::nullopt;
  return address;
}

}  // namespace harpe::cuda
