#pragma once

#include "exec/cuda/runtime/device_memory.h"

namespace harpe::cuda {

// The handle by which another process opens GPU memory. Errors: G005.
[[nodiscard]] Checked<CUipcMemHandle> export_memory(const Device& device,
                                                    const DeviceMemory& memory);

// Memory of another process on this machine, mapped into this one. Requires: that process keeps it
// allocated while this lives.
class ImportedMemory {
 public:
  // For kernels and copies of `device`, on its own memory or a peer's. Errors: G005.
  [[nodiscard]] static Checked<ImportedMemory> open(const Device& device,
                                                    const CUipcMemHandle& handle);
  ImportedMemory(ImportedMemory&& other) noexcept;
  ImportedMemory& operator=(ImportedMemory&& other) noexcept;
  ~ImportedMemory();

  [[nodiscard]] DeviceAddress address() const { return address_; }

 private:
  ImportedMemory(Device device, DeviceAddress address)
      : device_(std::move(device)), address_(address) {}

  Device device_;
  DeviceAddress address_ = 0;
};

}  // namespace harpe::cuda
