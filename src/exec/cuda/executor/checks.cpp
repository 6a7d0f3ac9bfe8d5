#include "exec/cuda/executor/checks.h"

namespace harpe::cuda {
Checked<Ok> check_one_rank_each(const processes::Launch& launch, const Plan& plan) {
  if (launch.ranks == plan.mesh.ranks()) return Ok{};
  return make_diag(DiagCode::N016,
                   {{"variable", launch.ranks_by},
                    {"reason", "is " + std::to_string(launch.ranks) + ", and the plan has " +
                                   std::to_string(plan.mesh.ranks()) + " ranks, each on a GPU"}});
}

Checked<std::vector<GpuPart>> gpus_of(const DriverApi& driver, std::int64_t ranks,
                                      const CudaOptions& options) {
  HP_TRY(const int gpus, count_devices(driver));
  if (gpus == 0 || ranks > gpus * (options.share_gpus ? GpuPart::kMost : 1)) {
    return make_diag(DiagCode::G070, {{"ranks", ranks}, {"gpus", gpus}});
  }
  const auto part_of = [gpus](int rank, int of_host) {
    const int gpu = rank % gpus;
    return GpuPart{
        .gpu = DeviceId(gpu), .index = rank / gpus, .parts = (of_host - gpu + gpus - 1) / gpus};
  };
  if (options.launch)
    return std::vector{part_of(options.launch->local_rank, options.launch->local_ranks)};
  std::vector<GpuPart> parts;
  for (int rank = 0; rank < ranks; ++rank) parts.push_back(part_of(rank, static_cast<int>(ranks)));
  return parts;
}

}  // namespace harpe::cuda
