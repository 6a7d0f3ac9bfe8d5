#pragma once

#include "run/gpus.h"

namespace harpe {

// GPUs through the CUDA executor; compiled if CUDA's headers are present.
class CudaGpus final : public Gpus {
 public:
  [[nodiscard]] Checked<int> count() const override;
  [[nodiscard]] std::string name() const override;
  [[nodiscard]] Checked<std::unique_ptr<Executor>> make_executor(
      const Plan& plan, const BackendRequest& request) const override;

  [[nodiscard]] Checked<std::unique_ptr<RankGroup>> join_group(
      const GroupRequest& request, int gpu, const CudaPlaces& places) const override;

  void examine(const CudaPlaces& places, Examination& examination) const override;
  [[nodiscard]] Checked<KernelListing> list_kernels(const KernelRequest& request) const override;

  [[nodiscard]] Checked<std::unique_ptr<Baselines>> open_baselines(
      int ranks, const CudaPlaces& places) const override;
  [[nodiscard]] Checked<FreeMemory> watch_memory(int gpus) const override;
  [[nodiscard]] std::shared_ptr<const void> pin(const TensorMap& tensors) const override;

  [[nodiscard]] Checked<cuda::profile::GpuFigures> measure(
      const GpuProfileRequest& request) const override;
};

}  // namespace harpe
