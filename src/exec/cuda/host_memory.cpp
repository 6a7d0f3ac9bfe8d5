#include "exec/cuda/host_memory.h"

#include <utility>

#include "exec/cuda/current_device.h"
#include "support/check.h"

namespace harpe::cuda {

Checked<PinnedMemory> PinnedMemory::pin(const Device& device, std::span<const std::byte> bytes) {
  HP_CHECK(bytes.size() >= kLeastPinned, "memory that is pinned has pages of its own");
  const CurrentDevice current(device);
  auto* const host = const_cast<std::byte*>(bytes.data());
  HP_REQUIRE_OK(driver_call(
      device.driver(), "cuMemHostRegister",
      device.driver().cuMemHostRegister(
          host, bytes.size(), CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP)));
  return PinnedMemory(device, host);
}

PinnedMemory::PinnedMemory(PinnedMemory&& other) noexcept
    : device_(other.device_), host_(std::exchange(other.host_, nullptr)) {}

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
