#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "exec/cuda/runtime/device.h"
#include "exec/cuda/runtime/tensor_map.h"

namespace harpe::cuda {

// From so many bytes on memory of the host has pages of its own, which nothing else pins.
inline constexpr std::size_t kLeastPinned = std::size_t{64} << 20;

// Memory of the caller that every GPU of the process reads where it lies, while this lives and the
// memory does.
class PinnedMemory {
 public:
  // Requires: pages of its own, as from kLeastPinned bytes on, pinned by nobody else. Errors: G005.
  [[nodiscard]] static Checked<PinnedMemory> pin(const Device& device,
                                                 std::span<const std::byte> bytes);
  PinnedMemory(PinnedMemory&& other) noexcept;
  PinnedMemory& operator=(PinnedMemory&&) = delete;
  ~PinnedMemory();

  [[nodiscard]] DeviceAddress address() const { return address_; }  // for GPUs

 private:
  PinnedMemory(Device device, void* host) : device_(std::move(device)), host_(host) {}

  Device device_;
  void* host_ = nullptr;
  DeviceAddress address_ = 0;
};

// Where GPUs have memory that is pinned; none where it is not, or is short.
[[nodiscard]] std::optional<DeviceAddress> address_of_pinned(const Device& device,
                                                             std::span<const std::byte> bytes);

}  // namespace harpe::cuda
