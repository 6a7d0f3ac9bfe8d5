#include "exec/cuda/executor/checks.h"

#include <set>

#include "exec/named_kernels.h"
#include "sync/nodes.h"

namespace harpe::cuda {
namespace {

constexpr std::int64_t kMaxTasks = 1'000'000;  // D17

// By what GPUs cannot be made to do here.
bool is_out_of_reach(const Task& task) {
  if (task.kind != TaskKind::Copy && task.kind != TaskKind::Collective) return false;
  return task.via == Via::Ibgda || task.via == Via::Multimem;
}

}  // namespace

Checked<Ok> check_tasks(const Plan& plan) {
  const auto tasks = static_cast<std::int64_t>(plan.tasks.size());
  if (tasks > kMaxTasks) {
    return make_diag(DiagCode::X010, {{"tasks", tasks}, {"limit", kMaxTasks}});
  }
  for (std::size_t id = 0; id < plan.tasks.size(); ++id) {
    if (!is_out_of_reach(plan.tasks[id])) continue;
    return make_diag(DiagCode::G074, {{"task", id}, {"via", print(plan.tasks[id].via)}});
  }
  HP_REQUIRE_OK(check_kernels(plan, gpu_offers()));
  return sync::check_nodes(plan, sync::Nodes(plan));
}

Checked<Ok> check_one_rank_each(const processes::Launch& launch, const Plan& plan) {
  if (launch.ranks == plan.mesh.ranks()) return Ok{};
  return make_diag(DiagCode::N016,
                   {{"variable", launch.ranks_by},
                    {"reason", "is " + std::to_string(launch.ranks) + ", and the plan has " +
                                   std::to_string(plan.mesh.ranks()) + " ranks, each on a GPU"}});
}

Checked<std::vector<DeviceId>> gpus_of(const DriverApi& driver, std::int64_t ranks,
                                       const CudaOptions& options) {
  // More ranks' streams than that do not all get queues of their own, and may wait for each other.
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
