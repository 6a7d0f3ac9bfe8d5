#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "exec/cuda/runtime/device.h"
#include "exec/cuda/runtime/tensor_map.h"

namespace harpe::cuda {

// GPU memory, aligned to 512 bytes, owned by this object.
class DeviceMemory {
 public:
  // Errors, as for the next three: G005, G008.
  [[nodiscard]] static Checked<DeviceMemory> allocate(const Device& device, std::int64_t bytes);
  // `words` of 32 bits, all zero.
  [[nodiscard]] static Checked<DeviceMemory> zeros(const Device& device, std::int64_t words);
  // The same, with every word set to `value`.
  [[nodiscard]] static Checked<DeviceMemory> filled(const Device& device, std::int64_t words,
                                                    std::uint32_t value);
  // A copy of the bytes.
  [[nodiscard]] static Checked<DeviceMemory> copy_of(const Device& device,
                                                     std::span<const std::byte> bytes);
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory();

  [[nodiscard]] DeviceAddress address() const { return address_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  DeviceMemory(Device device, DeviceAddress address, std::int64_t bytes)
      : device_(std::move(device)), address_(address), bytes_(bytes) {
    device_.note_allocated(bytes_);
  }

  Device device_;
  DeviceAddress address_ = 0;
  std::int64_t bytes_ = 0;
};

// Pinned host memory that every GPU of the process can access, for reports of running kernels. The
// host sees what a kernel wrote before a release at system scope whose value the host has acquired.
class MappedMemory {
 public:
  // Filled with zeros. Errors: G005.
  [[nodiscard]] static Checked<MappedMemory> allocate(const Device& device, std::int64_t bytes);
  MappedMemory(MappedMemory&& other) noexcept;
  MappedMemory& operator=(MappedMemory&& other) noexcept;
  ~MappedMemory();

  [[nodiscard]] std::span<std::byte> host() const { return host_; }
  [[nodiscard]] DeviceAddress address() const { return address_; }  // the same, for kernels

 private:
  MappedMemory(Device device, std::span<std::byte> host, DeviceAddress address)
      : device_(std::move(device)), host_(host), address_(address) {}

  Device device_;
  std::span<std::byte> host_;
  DeviceAddress address_ = 0;
};

class Event;

// A stream. It does not synchronize with the legacy default stream.
class Stream {
 public:
  // Blocks of an urgent stream are scheduled first. Errors: G005.
  [[nodiscard]] static Checked<Stream> create(const Device& device, bool is_urgent = false);
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;
  ~Stream();

  [[nodiscard]] CUstream handle() const { return handle_; }
  [[nodiscard]] const Device& device() const { return device_; }
  // Work enqueued from here on runs after the event's last record.
  [[nodiscard]] Result<Ok, CudaError> wait_for(const Event& event) const;
  // Waits on the host for all enqueued work.
  [[nodiscard]] Result<Ok, CudaError> synchronize() const;

 private:
  Stream(Device device, CUstream handle) : device_(std::move(device)), handle_(handle) {}

  Device device_;
  CUstream handle_ = nullptr;
};

// A point in a stream; a timed event also has the time when it was reached.
class Event {
 public:
  // Errors: G005.
  [[nodiscard]] static Checked<Event> create(const Device& device);
  // Cheaper; only for order between streams. Errors: G005.
  [[nodiscard]] static Checked<Event> create_untimed(const Device& device);
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  ~Event();

  [[nodiscard]] CUevent handle() const { return handle_; }
  [[nodiscard]] Result<Ok, CudaError> record(const Stream& stream) const;
  // Time since `start`. Requires: both are timed and have been reached.
  [[nodiscard]] Result<double, CudaError> milliseconds_since(const Event& start) const;

 private:
  [[nodiscard]] static Checked<Event> create_with(const Device& device, unsigned flags);
  Event(Device device, CUevent handle) : device_(std::move(device)), handle_(handle) {}

  Device device_;
  CUevent handle_ = nullptr;
};

}  // namespace harpe::cuda
