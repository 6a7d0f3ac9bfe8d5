#include "run/gpus.h"
#ifdef HARPE_WITH_CUDA
#include "run/cuda/cuda_gpus.h"
#endif

namespace harpe {

Checked<const Gpus*> find_gpus() {
#ifdef HARPE_WITH_CUDA
  static const CudaGpus kGpus;
  return static_cast<const Gpus*>(&kGpus);
#else
  return make_diag(DiagCode::G001, {});
#endif
}

}  // namespace harpe
