#pragma once

#include <string>

#include "bench/cuda/gpu.h"
#include "exec/cuda/device/wait_args.h"

namespace harpe::bench {

// Flags, the epoch and what a failed wait leaves, for the kernels of one GPU. Nothing is ever reset
// between launches but after a fault.
class Signals {
 public:
  // `limit_ns` of one wait.
  Signals(const Gpu& gpu, int flags, std::uint64_t limit_ns);

  [[nodiscard]] device::WaitContext context() const;
  // Flag `index`, which grows by `arrivals` each epoch and is called by its index.
  [[nodiscard]] device::FlagWait wait(int index, std::uint32_t arrivals) const;
  [[nodiscard]] Address address(int index) const;

  [[nodiscard]] std::int64_t bytes() const;  // from the first flag to behind the last

  // Every flag as if `epoch` epochs of `arrivals` each had passed.
  void start_at(std::uint32_t epoch, std::uint32_t arrivals, CUstream stream);
  // One more epoch, for launches after this in the stream.
  void begin_epoch(CUstream stream);
  // Every flag as it is once all came in this epoch.
  void raise_all(std::uint32_t arrivals, CUstream stream) const;
  [[nodiscard]] std::uint32_t epoch() const { return epoch_; }

  // "" or what a wait that expired left; valid once its kernel is done.
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
