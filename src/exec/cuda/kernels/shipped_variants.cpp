#include "exec/cuda/kernels/shipped_variants.h"

#include "exec/cuda/kernels/attention/attention_variants.h"
#include "exec/cuda/kernels/backward/backward_variants.h"
#include "exec/cuda/kernels/gemm/gemm_variants.h"
#include "exec/cuda/kernels/plain/plain_variants.h"
#include "exec/cuda/signals/signal_variants.h"

namespace harpe::cuda {

std::vector<KernelVariant> shipped_variants() {
  std::vector<KernelVariant> all = gemm_variants();
  for (const std::vector<KernelVariant>& family :
       {attention_variants(), backward_variants(), signal_variants(), plain_variants()}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

}  // namespace harpe::cuda
