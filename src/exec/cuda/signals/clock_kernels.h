#pragma once

#include "exec/cuda/jit/kernel_library.h"
#include "exec/cuda/runtime/device_memory.h"
#include "exec/cuda/signals/clock.h"

namespace harpe::cuda {

// Reads a GPU's clock: between other work of a stream, and against the host's steady clock, which
// all processes of a machine share. Must not outlive its library.
class ClockKernels {
 public:
  // Errors: those of `KernelLibrary::load`.
  [[nodiscard]] static Checked<ClockKernels> load(KernelLibrary& library);

  // Writes the GPU's time, 64 bits in nanoseconds, once the stream's earlier work is done.
  // Requires: the GPU is current for the calling thread.
  [[nodiscard]] Result<Ok, CudaError> stamp(const Stream& stream, DeviceAddress at) const;

  // Queries the GPU's clock many times within a second; best on an idle GPU. Errors: G005, also
  // without an answer.
  [[nodiscard]] Checked<ClockOffset> look(const Stream& stream) const;

 private:
  ClockKernels(const Device& device, const LoadedKernel* stamp, const LoadedKernel* answer)
      : device_(&device), stamp_(stamp), answer_(answer) {}

  const Device* device_;
  const LoadedKernel* stamp_;
  const LoadedKernel* answer_;
};

}  // namespace harpe::cuda
