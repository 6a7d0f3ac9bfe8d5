#pragma once

#include <memory>
#include <optional>

#include "exec/cuda/kernels/gemm/gemm.h"
#include "exec/cuda/kernels/prepared_kernel.h"
#include "exec/cuda/kernels/stream_sums.h"
#include "exec/cuda/runtime/device_memory.h"

namespace harpe::cuda {

// Memory that a GEMM needs on the GPU besides its operands.
struct GemmMemory {
  std::optional<DeviceMemory> panels;
  std::optional<DeviceMemory> k_chunks;
  std::shared_ptr<const StreamSums> sums;  // if tiles are cut
  std::optional<DeviceMemory> tickets;
  std::optional<DeviceMemory> jobs;
  std::optional<DeviceMemory> identity;
  std::optional<DeviceMemory> fused_stores;
};

// A GEMM with everything it needs on the GPU: kernel, tables, memory for cut tiles. Launches
// follow each other in one stream; each computes the whole GEMM.
class PreparedGemm final : public PreparedKernel {
 public:
  // `blocks`: thread blocks that run at once; by default one on each SM. `sums`: the memory of its
  // stream, which the caller allocates before the first launch; null: the GEMM allocates its own.
  // Requires: `library` outlives this; the choice is choose_gemm's or cut_gemm's for the spec;
  // where the kernel waits for flags, spec.wait has a poison word and a fault record. Errors: those
  // of check(spec, blocks) and of `library.load`; G041 if the choice stores by TMA but C's
  // addresses or strides do not allow it.
  [[nodiscard]] static Checked<PreparedGemm> make(KernelLibrary& library, const GemmSpec& spec,
                                                  const GemmChoice& choice,
                                                  std::optional<int> blocks = std::nullopt,
                                                  std::shared_ptr<StreamSums> sums = nullptr);

  [[nodiscard]] Result<Ok, CudaError> launch(CUstream stream) const override;

  [[nodiscard]] const GemmChoice& choice() const { return choice_; }

 private:
  PreparedGemm(const KernelLibrary& library, const LoadedKernel& kernel, GemmChoice choice)
      : library_(&library), kernel_(&kernel), choice_(choice) {}

  const KernelLibrary* library_;
  const LoadedKernel* kernel_;
  GemmChoice choice_;
  device::GemmArgs args_{};
  LaunchShape shape_;
  GemmMemory memory_;
  bool keeps_sums_ = false;  // few rows: sums wait in memory for their addends
};

}  // namespace harpe::cuda
