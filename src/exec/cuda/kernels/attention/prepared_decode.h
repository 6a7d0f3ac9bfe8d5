#pragma once

#include <memory>

#include "exec/cuda/kernels/attention/decode.h"
#include "exec/cuda/kernels/prepared_kernel.h"
#include "exec/cuda/kernels/stream_sums.h"

namespace harpe::cuda {

// Attention of few queries with everything it needs on the GPU: kernel, maps, memory for states.
// Launches follow each other in one stream, and each computes the whole attention. Data may change
// between launches; addresses stay.
class PreparedDecode final : public PreparedKernel {
 public:
  // `sums`: the memory of the stream that it is launched in; null: it allocates its own. Requires:
  // `library` outlives this; can_decode(spec). Errors: those of check and of loading; G005.
  [[nodiscard]] static Checked<PreparedDecode> make(KernelLibrary& library,
                                                    const AttentionSpec& spec,
                                                    std::shared_ptr<StreamSums> sums = nullptr);

  [[nodiscard]] Result<Ok, CudaError> launch(CUstream stream) const override;

 private:
  PreparedDecode(const KernelLibrary& library, const LoadedKernel& kernel)
      : library_(&library), kernel_(&kernel) {}

  [[nodiscard]] Checked<Ok> place_fused_stores(const Device& device, const AttentionSpec& spec);
  void place_bounds(const AttentionSpec& spec);

  const KernelLibrary* library_;
  const LoadedKernel* kernel_;
  device::DecodeExchangeArgs args_{};
  bool exchanges_ = false;
  std::optional<DeviceMemory> stored_;  // counters of fused stores, zero before and after
  LaunchShape shape_;
  std::shared_ptr<StreamSums> sums_;
};

}  // namespace harpe::cuda
