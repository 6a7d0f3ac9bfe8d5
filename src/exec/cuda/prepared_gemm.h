#pragma once

#include <optional>

#include "exec/cuda/device_memory.h"
#include "exec/cuda/gemm.h"
#include "exec/cuda/kernel_library.h"

namespace harpe::cuda {

// A product with everything it needs on the GPU: kernel, tables, memory for cut tiles. Launches
// follow each other in one stream; each does the whole product.
class PreparedGemm {
 public:
  // Requires: `library` outlives this; where flags are waited for, spec.wait has a poison word and
  // a fault record. Errors: those of check(spec) and of `library.load`; G041 too where the choice
  // stores in bulk and C cannot be.
  [[nodiscard]] static Checked<PreparedGemm> make(KernelLibrary& library, const GemmSpec& spec,
                                                  const GemmChoice& choice);

  [[nodiscard]] Result<Ok, CudaError> launch(CUstream stream) const;

  [[nodiscard]] const GemmChoice& choice() const { return choice_; }

 private:
  PreparedGemm(const KernelLibrary& library, const LoadedKernel& kernel, GemmChoice choice)
      : library_(&library), kernel_(&kernel), choice_(choice) {}

  const KernelLibrary* library_;
  const LoadedKernel* kernel_;
  GemmChoice choice_;
  device::GemmArgs args_{};
  LaunchShape shape_;
  std::optional<DeviceMemory> tables_;
  std::optional<DeviceMemory> sums_;  // partials, then tickets
  std::optional<DeviceMemory> jobs_;
};

}  // namespace harpe::cuda
