#include "exec/cuda/executor/checks.h"

#include <set>

namespace harpe::cuda {
Checked<Ok> check_one_rank_each(const processes::Launch& launch, const Plan& plan) {
  if (launch.ranks == plan.mesh.ranks()) return Ok{};
  return make_diag(DiagCode::N016,
                   {{"variable", launch.ranks_by},
                    {"reason", "is " + std::to_string(launch.ranks) + ", and the plan has " +
                                   std::to_string(plan.mesh.ranks()) + " ranks, each on a GPU"}});
}

Checked<std::vector<DeviceId>> gpus_of(const DriverApi& driver, std::int64_t ranks,
                                       const CudaOptions& options) {
  // Streams of more ranks do not all get hardware queues of their own, and may wait for each other.
  constexpr std::int64_t kMostSharing = 4;
  HP_TRY(const int gpus, count_devices(driver));
  if (gpus == 0 || ranks > gpus * (options.share_gpus ? kMostSharing : 1)) {
    return make_diag(DiagCode::G070, {{"ranks", ranks}, {"gpus", gpus}});
  }
  if (options.launch) return std::vector{DeviceId(options.launch->local_rank % gpus)};
  std::vector<DeviceId> ids;
  for (std::int64_t rank = 0; rank < ranks; ++rank) ids.emplace_back(rank % gpus);
  return ids;
}

bool share_gpus(const std::vector<DeviceId>& gpus, const CudaOptions& options) {
  if (options.launch) return options.share_gpus;
  return std::set(gpus.begin(), gpus.end()).size() < gpus.size();
}

}  // namespace harpe::cuda
