#include "exec/cuda/kernels/nccl/nccl_launch.h"
#include "exec/cuda/kernels/prepared_order.h"
#include "exec/cuda/library/nccl.h"

namespace harpe::cuda {

Checked<std::unique_ptr<PreparedKernel>> prepare_nccl(const KernelLaunch& launch,
                                                      const LaunchTools& /*tools*/) {
  const auto* const spec = find_spec<library::NcclCall>(launch);
  if (spec == nullptr) return std::unique_ptr<PreparedKernel>();
  return prepare_order({.order = [call = *spec](CUstream stream) { return order(call, stream); },
                        .library = "NCCL",
                        .call = "ncclGroupEnd",
                        .meets_others = true});
}

}  // namespace harpe::cuda
