#include "exec/cuda/runtime/ipc_memory.h"

#include <utility>

#include "exec/cuda/runtime/current_device.h"

namespace harpe::cuda {

Checked<CUipcMemHandle> export_memory(const Device& device, const DeviceMemory& memory) {
  const CurrentDevice current(device);
  CUipcMemHandle handle{};
  HP_REQUIRE_OK(driver_call(device.driver(), "cuIpcGetMemHandle",
                            device.driver().cuIpcGetMemHandle(&handle, memory.address())));
  return handle;
}

Checked<ImportedMemory> ImportedMemory::open(const Device& device, const CUipcMemHandle& handle) {
  const CurrentDevice current(device);
  CUdeviceptr address = 0;
  HP_REQUIRE_OK(driver_call(
      device.driver(), "cuIpcOpenMemHandle",
      device.driver().cuIpcOpenMemHandle(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)));
  return ImportedMemory(device, address);
}

ImportedMemory::ImportedMemory(ImportedMemory&& other) noexcept
    : device_(other.device_), address_(std::exchange(other.address_, 0)) {}

ImportedMemory& ImportedMemory::operator=(ImportedMemory&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(address_, other.address_);
  return *this;
}

ImportedMemory::~ImportedMemory() {
  if (address_ == 0) return;
  const CurrentDevice current(device_);
  device_.driver().cuIpcCloseMemHandle(address_);
}

}  // namespace harpe::cuda
