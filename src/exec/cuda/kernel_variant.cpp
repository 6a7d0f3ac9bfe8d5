#include "exec/cuda/kernel_variant.h"

namespace harpe::cuda {

std::vector<KernelVariant> shipped_variants() { return {}; }

}  // namespace harpe::cuda
