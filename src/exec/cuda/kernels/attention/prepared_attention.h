#pragma once

#include <memory>
#include <optional>

#include "exec/cuda/kernels/attention/attention.h"
#include "exec/cuda/kernels/plain/device/join_args.h"
#include "exec/cuda/kernels/prepared_kernel.h"
#include "exec/cuda/runtime/device_memory.h"

namespace harpe::cuda {

// Attention with everything it needs on the GPU: kernel, maps, the ticket counter. Launches follow
// each other in one stream, and each computes the whole attention. Data may change between
// launches; addresses stay.
class PreparedAttention final : public PreparedKernel {
 public:
  // `blocks`: thread blocks that run at once; by default one on each SM.
  // Requires: `library` outlives this; the configuration is for these heads; where the kernel waits
  // for flags, spec.wait has a poison word and a fault record. Errors: those of check and of
  // loading; G005.
  [[nodiscard]] static Checked<PreparedAttention> make(KernelLibrary& library,
                                                       const AttentionSpec& spec,
                                                       const device::AttentionConfig& config,
                                                       std::optional<int> blocks = std::nullopt);

  [[nodiscard]] Result<Ok, CudaError> launch(CUstream stream) const override;

  [[nodiscard]] const device::AttentionConfig& config() const { return config_; }

 private:
  PreparedAttention(const KernelLibrary& library, const LoadedKernel& kernel,
                    const device::AttentionConfig& config)
      : library_(&library), kernel_(&kernel), config_(config) {}

  const KernelLibrary* library_;
  const LoadedKernel* kernel_;
  device::AttentionConfig config_;
  std::unique_ptr<device::AttentionArgs> args_;  // large
  LaunchShape shape_;
  // With parts: the memory of their states, and the kernel that joins them.
  struct Join {
    const LoadedKernel* kernel = nullptr;
    device::JoinArgs args{};
    LaunchShape shape;
    DeviceMemory states;
  };
  [[nodiscard]] static Checked<Join> make_join(KernelLibrary& library, const AttentionSpec& spec);

  std::optional<DeviceMemory> ticket_;
  std::optional<Join> join_;
  std::optional<DeviceMemory> jobs_;
};

}  // namespace harpe::cuda
