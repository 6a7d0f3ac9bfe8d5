#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>

#include "exec/cuda/runtime/device_memory.h"
#include "exec/cuda/signals/device/signal_args.h"

namespace harpe::cuda {

// Where the signals of a rank's page lie: in its GPU's memory, each in 128 bytes of its own, so
// that polling one does not slow the others' arrival. Of a peer's page in another process too.
struct SignalAddresses {
  static constexpr std::int64_t kLine = 128;

  DeviceAddress base = 0;
  std::int32_t flags = 0;  // how many

  [[nodiscard]] DeviceAddress epoch() const { return base; }
  [[nodiscard]] DeviceAddress poison() const { return base + kLine; }
  [[nodiscard]] DeviceAddress told() const { return poison() + sizeof(std::uint32_t); }
  // Requires: 0 <= index < flags.
  [[nodiscard]] DeviceAddress flag(std::int32_t index) const;
  // Behind the flags: where elements come that say themselves that they are there. Aligned to 256.
  [[nodiscard]] DeviceAddress inbox() const {
    return base + static_cast<DeviceAddress>(bytes_for(flags + flags % 2));
  }

  [[nodiscard]] static std::int64_t bytes_for(std::int32_t flags) { return (flags + 2) * kLine; }
  [[nodiscard]] static std::int64_t bytes_for(std::int32_t flags, std::int64_t inbox_bytes) {
    return bytes_for(inbox_bytes == 0 ? flags : flags + flags % 2) + inbox_bytes;
  }
};

// What one rank waits on: flags and counters that others raise, its inbox, its epoch, whether it is
// poisoned or told to give up, and its first fault.
class SignalPage {
 public:
  struct Sizes {
    std::int32_t flags = 0;
    std::int64_t inbox_bytes = 0;
    std::int64_t least_bytes = 0;  // of the memory, for who shares whole allocations alone
  };
  // All zero, and nothing in the inbox: before the first epoch. Errors: G005.
  [[nodiscard]] static Checked<SignalPage> create(const Device& device, const Sizes& sizes);

  [[nodiscard]] const SignalAddresses& addresses() const { return addresses_; }
  [[nodiscard]] const DeviceMemory& memory() const { return words_; }
  // For kernels of this rank.
  [[nodiscard]] device::WaitContext context(std::chrono::nanoseconds limit,
                                            std::uint32_t task = 0) const;

  // Who waits, now or later, leaves and says for what, while kernels run; ordered in `aside`, which
  // holds none of them.
  [[nodiscard]] Result<Ok, CudaError> give_up(const Stream& aside) const;

  // Whether a wait of this rank has failed, at any time.
  [[nodiscard]] bool has_fault() const;
  // Whether an execution of this rank has ended, or begun, after it was poisoned.
  [[nodiscard]] bool is_stopped() const;
  // The wait of this rank that failed. Requires, like all below: no kernel that uses the page, of
  // any rank, is under way.
  [[nodiscard]] std::optional<device::FaultRecord> fault() const;
  // Whether waits of this rank were given up: for its own fault, or for a peer's.
  [[nodiscard]] Checked<bool> is_poisoned() const;
  // As after `create`. Errors: G005.
  [[nodiscard]] Checked<Ok> clear();
  // As after so many epochs; what a flag grows by in each is 1 or, where given, `arrivals` of its
  // index. Errors: G005.
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
