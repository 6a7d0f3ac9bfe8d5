#pragma once

#include <memory>

#include "exec/cuda/attention.h"
#include "exec/cuda/kernel_library.h"

namespace harpe::cuda {

// A run of attention, prepared: launched any number of times, on data that may change, while the
// addresses stay.
struct AttentionRun {
  const LoadedKernel* kernel = nullptr;
  LaunchShape shape;
  std::shared_ptr<const device::AttentionArgs> args;
};

// Errors: those of check(spec) and of `library.load`; G005 the driver takes no such map.
[[nodiscard]] Checked<AttentionRun> prepare_attention(KernelLibrary& library,
                                                      const AttentionSpec& spec);

// The same with the configuration given. Requires: it is for such heads.
[[nodiscard]] Checked<AttentionRun> prepare_attention(KernelLibrary& library,
                                                      const AttentionSpec& spec,
                                                      const device::AttentionConfig& config);

[[nodiscard]] Result<Ok, CudaError> launch(const DriverApi& driver, const AttentionRun& run,
                                           CUstream stream);

}  // namespace harpe::cuda
