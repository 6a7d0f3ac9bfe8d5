#include "exec/cuda/kernel_variant.h"

#include "exec/cuda/attention_variants.h"
#include "exec/cuda/gemm_variants.h"

namespace harpe::cuda {

std::vector<KernelVariant> shipped_variants() {
  std::vector<KernelVariant> all = gemm_variants();
  const std::vector<KernelVariant> attention = attention_variants();
  all.insert(all.end(), attention.begin(), attention.end());
  return all;
}

}  // namespace harpe::cuda
