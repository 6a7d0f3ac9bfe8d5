#include "bench/cuda/gemm_runner.h"

#include "bench/cuda/must.h"
#include "exec/cuda/kernels/gemm/gemm_variants.h"

namespace harpe::bench {

using device::Element;
using device::GemmConfig;
using device::GemmLayout;
using device::GemmStore;

std::vector<GemmConfig> shipped_gemm_configs() {
  std::vector<GemmConfig> configs;
  for (GemmConfig config : cuda::gemm_tiles()) {
    for (const GemmStore store :
         {GemmStore::Bulk, GemmStore::Add, GemmStore::Direct, GemmStore::DirectAdd}) {
      for (const GemmLayout layout : {GemmLayout::NMajor, GemmLayout::KMajor}) {
        for (const Element in : {Element::BF16, Element::F16}) {
          for (const Element out : {in, Element::F32}) {
            config.store = store;
            config.layout = layout;
            config.in = in;
            config.out = out;
            if (cuda::ships(config)) configs.push_back(config);
          }
        }
      }
    }
  }
  return configs;
}

int blocks_at_once(Gpu& gpu, const GemmConfig& config) {
  const cuda::LoadedKernel* const kernel = must(gpu.library().load(cuda::gemm_variant(config)));
  return gpu.processors() * kernel->blocks_per_multiprocessor;
}

GemmRunner::GemmRunner(Gpu& gpu, const cuda::GemmSpec& spec, const cuda::GemmChoice& choice)
    : prepared_(must(cuda::PreparedGemm::make(gpu.library(), spec, choice))) {}

void GemmRunner::launch(CUstream stream) const { must(prepared_.launch(stream)); }

}  // namespace harpe::bench
