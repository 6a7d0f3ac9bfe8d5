#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "exec/cuda/runtime/device.h"
#include "exec/cuda/runtime/tensor_map.h"

namespace harpe::cuda {

// From this size on, host allocations have pages of their own, which nothing else pins.
inline constexpr std::size_t kLeastPinned = std::size_t{64} << 20;

// The caller's host memory, readable in place by every GPU of the process while this and the memory
// live.
class PinnedMemory {
 public:
  // Requires: whole pages, as from kLeastPinned bytes on, not pinned already. Errors: G005.
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

// The GPU address of host memory that is pinned; none if it is not pinned, or small.
[[nodiscard]] std::optional<DeviceAddress> address_of_pinned(const Device& device,
                                                             std::span<const std::byte> bytes);

}  // namespace harpe::cuda
