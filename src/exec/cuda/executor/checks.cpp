#include "exec/cuda/executor/checks.h"

namespace harpe::cuda {
Checked<Ok> check_launch(const CudaOptions& options, const Plan& plan) {
  const processes::Launch& launch = *options.launch;
  if (options.divide_gpus) {
    return make_diag(DiagCode::N016,
                     {{"variable", launch.ranks_by},
                      {"reason", "is " + std::to_string(launch.ranks) +
                                     ", but GPUs are divided between the ranks of one process"}});
  }
  if (launch.ranks == plan.mesh.ranks()) return Ok{};
  return make_diag(DiagCode::N016,
                   {{"variable", launch.ranks_by},
                    {"reason", "is " + std::to_string(launch.ranks) + ", and the plan has " +
                                   std::to_string(plan.mesh.ranks()) + " ranks, each on a GPU"}});
}

Checked<std::vector<GpuPart>> gpus_of(const DriverApi& driver, std::int64_t ranks,
                                      const CudaOptions& options) {
  HP_TRY(const int gpus, count_devices(driver));
  const bool may_share = options.share_gpus || options.divide_gpus;
  if (gpus == 0 || ranks > gpus * (may_share ? GpuPart::kMost : 1)) {
    return make_diag(DiagCode::G070, {{"ranks", ranks}, {"gpus", gpus}});
  }
  if (options.launch)
    return std::vector<GpuPart>{{.gpu = DeviceId(options.launch->local_rank % gpus)}};
  std::vector<GpuPart> parts;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const std::int64_t gpu = rank % gpus;
    parts.push_back({.gpu = DeviceId(gpu)});
    if (!options.divide_gpus) continue;
    parts.back().index = static_cast<int>(rank / gpus);
    parts.back().parts = static_cast<int>((ranks - gpu + gpus - 1) / gpus);
  }
  return parts;
}

}  // namespace harpe::cuda
