#pragma once

#include <optional>

#include "bench/cuda/gpu.h"
#include "exec/cuda/kernels/gemm/prepared_gemm.h"

namespace harpe::bench {

// Thread blocks of the configuration that run at once.
[[nodiscard]] int blocks_at_once(Gpu& gpu, const device::GemmConfig& config);

// One of Harpe's GEMMs, ready to be launched any number of times.
class GemmRunner {
 public:
  // `blocks`: thread blocks that run at once; none: as many as the GPU has SMs.
  GemmRunner(Gpu& gpu, const cuda::GemmSpec& spec, const cuda::GemmChoice& choice,
             std::optional<int> blocks = std::nullopt);
  void launch(CUstream stream) const;

 private:
  cuda::PreparedGemm prepared_;
};

}  // namespace harpe::bench
