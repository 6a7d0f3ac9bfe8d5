#include "bench/cuda/gemm_runner.h"

#include "bench/cuda/must.h"
#include "exec/cuda/kernels/gemm/gemm_variants.h"

namespace harpe::bench {

using device::GemmConfig;

int blocks_at_once(Gpu& gpu, const GemmConfig& config) {
  const cuda::LoadedKernel* const kernel = must(gpu.library().load(cuda::gemm_variant(config)));
  return gpu.processors() * kernel->blocks_per_multiprocessor;
}

GemmRunner::GemmRunner(Gpu& gpu, const cuda::GemmSpec& spec, const cuda::GemmChoice& choice,
                       std::optional<int> blocks)
    : prepared_(must(cuda::PreparedGemm::make(gpu.library(), spec, choice, blocks))) {}

void GemmRunner::launch(CUstream stream) const { must(prepared_.launch(stream)); }

}  // namespace harpe::bench
