#pragma once

#include <string>

#include "bench/cuda/gpu.h"
#include "exec/cuda/device/wait_args.h"

namespace harpe::bench {

// The flags, the epoch and the record of a failed wait, for the kernels of one GPU. Flags are reset
// only after a fault.
class Signals {
 public:
  // `limit_ns` limits each wait.
  Signals(const Gpu& gpu, int flags, std::uint64_t limit_ns);

  [[nodiscard]] device::WaitContext context() const;
  // Flag `index`, which grows by `arrivals` per epoch; its name is its index.
  [[nodiscard]] device::FlagWait wait(int index, std::uint32_t arrivals) const;
  [[nodiscard]] Address address(int index) const;

  [[nodiscard]] std::int64_t bytes() const;  // from the first flag to the end of the last

  // Sets every flag to its value after `epoch` epochs of `arrivals` each.
  void start_at(std::uint32_t epoch, std::uint32_t arrivals, CUstream stream);
  // Starts one more epoch, for later launches in the stream.
  void begin_epoch(CUstream stream);
  // Sets every flag to its value after all arrivals of this epoch.
  void raise_all(std::uint32_t arrivals, CUstream stream) const;
  [[nodiscard]] std::uint32_t epoch() const { return epoch_; }

  // "", or the record of a wait that timed out; valid after its kernel ends.
  [[nodiscard]] std::string fault() const;
  [[nodiscard]] device::FaultRecord record() const;
  void clear_fault(CUstream stream);

 private:
  const Gpu* gpu_;
  int flags_;
  std::uint64_t limit_ns_;
  cuda::DeviceMemory words_;
  cuda::MappedMemory fault_;
  std::uint32_t epoch_ = 0;
};

}  // namespace harpe::bench
