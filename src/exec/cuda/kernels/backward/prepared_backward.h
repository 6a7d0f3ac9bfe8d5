#pragma once

#include <optional>
#include <utility>

#include "exec/cuda/kernels/backward/backward.h"
#include "exec/cuda/kernels/prepared_kernel.h"
#include "exec/cuda/runtime/device_memory.h"

namespace harpe::cuda {

// Gradients of attention with everything they need on the GPU: kernel and maps. Launches follow
// each other in one stream; each does the whole of it, on data that may change while the addresses
// stay.
class PreparedBackward final : public PreparedKernel {
 public:
  // `multiprocessors` work on it: all unless said otherwise. Requires: `library` outlives this.
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
