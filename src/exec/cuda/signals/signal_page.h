#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>

#include "exec/cuda/runtime/device_memory.h"
#include "exec/cuda/signals/device/signal_args.h"

namespace harpe::cuda {

// Addresses of the signals of a rank's page: in its GPU's memory, each in its own 128 bytes, so
// that polling one does not delay the arrival of others. Also for pages of peers in other
// processes.
struct SignalAddresses {
  static constexpr std::int64_t kLine = 128;

  DeviceAddress base = 0;
  std::int32_t flags = 0;  // number of flags and counters

  // The upper half of a word whose lower half kernels use to count it up (device::Bounds::ended).
  [[nodiscard]] DeviceAddress ended() const { return base; }
  [[nodiscard]] DeviceAddress epoch() const { return base + sizeof(std::uint32_t); }
  [[nodiscard]] DeviceAddress poison() const { return base + kLine; }
  [[nodiscard]] DeviceAddress told() const { return poison() + sizeof(std::uint32_t); }
  // Requires: 0 <= index < flags.
  [[nodiscard]] DeviceAddress flag(std::int32_t index) const;
  // Behind the flags: the inbox for data that serves as its own signal (in_data.cuh). 256-byte
  // aligned.
  [[nodiscard]] DeviceAddress inbox() const {
    return base + static_cast<DeviceAddress>(bytes_for(flags + flags % 2));
  }

  [[nodiscard]] static std::int64_t bytes_for(std::int32_t flags) { return (flags + 2) * kLine; }
  [[nodiscard]] static std::int64_t bytes_for(std::int32_t flags, std::int64_t inbox_bytes) {
    return bytes_for(inbox_bytes == 0 ? flags : flags + flags % 2) + inbox_bytes;
  }
};

// What one rank waits on: flags and counters that other ranks raise, its inbox, its epoch, its
// poison word, the word by which the host makes it give up, and its first fault.
class SignalPage {
 public:
  struct Sizes {
    std::int32_t flags = 0;
    std::int64_t inbox_bytes = 0;
    std::int64_t least_bytes = 0;  // of the memory, for sharing whole allocations
  };
  // All zero, with an empty inbox: the state before the first epoch. Errors: G005.
  [[nodiscard]] static Checked<SignalPage> create(const Device& device, const Sizes& sizes);

  [[nodiscard]] const SignalAddresses& addresses() const { return addresses_; }
  [[nodiscard]] const DeviceMemory& memory() const { return words_; }
  // For kernels of this rank.
  [[nodiscard]] device::WaitContext context(std::chrono::nanoseconds limit,
                                            std::uint32_t task = 0) const;

  // Makes every wait, now or later, end and record what it waited for, while kernels run. Enqueued
  // in `aside`, which must contain none of these kernels.
  [[nodiscard]] Result<Ok, CudaError> give_up(const Stream& aside) const;

  // Whether a wait of this rank has ever failed.
  [[nodiscard]] bool has_fault() const;
  // Whether an execution of this rank has ended, or begun, after the rank was poisoned.
  [[nodiscard]] bool is_stopped() const;
  // The failed wait of this rank. Requires, as all below: no kernel that uses the page, of any
  // rank, is running.
  [[nodiscard]] std::optional<device::FaultRecord> fault() const;
  // Whether waits of this rank were abandoned, for its own fault or a peer's.
  [[nodiscard]] Checked<bool> is_poisoned() const;
  // Restores the state after `create`. Errors: G005.
  [[nodiscard]] Checked<Ok> clear();
  // Sets the state after `epoch` epochs. A flag grows by 1 per epoch or, if given, by `arrivals` of
  // its index. Errors: G005.
  [[nodiscard]] Checked<Ok> start_at(std::uint32_t epoch,
                                     std::span<const std::uint32_t> arrivals = {});

 private:
  SignalPage(Device device, DeviceMemory words, MappedMemory record, SignalAddresses addresses,
             std::int64_t inbox_bytes)
      : device_(std::move(device)),
        words_(std::move(words)),
        record_(std::move(record)),
        addresses_(addresses),
        inbox_bytes_(inbox_bytes) {}

  [[nodiscard]] device::FaultRecord& record() const;
  [[nodiscard]] Checked<Ok> empty_inbox();

  Device device_;
  DeviceMemory words_;
  MappedMemory record_;
  SignalAddresses addresses_;
  std::int64_t inbox_bytes_;
};

}  // namespace harpe::cuda
