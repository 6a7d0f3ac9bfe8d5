#pragma once

#include <optional>
#include <utility>

#include "exec/cuda/kernels/backward/backward.h"
#include "exec/cuda/kernels/prepared_kernel.h"
#include "exec/cuda/runtime/device_memory.h"

namespace harpe::cuda {

// Attention backward with everything it needs on the GPU: kernel, maps and words. Launches follow
// each other in one stream, and each computes the whole backward pass. Data may change between
// launches; addresses stay.
class PreparedBackward final : public PreparedKernel {
 public:
  // `multiprocessors`: SMs that it may use; by default all. Requires: `library` outlives this.
  // Errors: those of check and of loading; G005.
  [[nodiscard]] static Checked<PreparedBackward> make(
      KernelLibrary& library, const BackwardSpec& spec,
      std::optional<int> multiprocessors = std::nullopt);

  [[nodiscard]] Result<Ok, CudaError> launch(CUstream stream) const override;

 private:
  PreparedBackward(const KernelLibrary& library, const LoadedKernel& kernel, DeviceMemory words)
      : library_(&library), kernel_(&kernel), words_(std::move(words)) {}

  const KernelLibrary* library_;
  const LoadedKernel* kernel_;
  DeviceMemory words_;
  device::BackwardArgs args_{};
  LaunchShape shape_;
};

}  // namespace harpe::cuda
