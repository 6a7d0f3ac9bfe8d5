#include "exec/cuda/target/check_tasks.h"

#include "exec/named_kernels.h"
#include "sync/nodes.h"

namespace harpe::cuda {
namespace {

constexpr std::int64_t kMaxTasks = 1'000'000;  // D17

// Whether the task uses a transport that is not supported on GPUs here.
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

}  // namespace harpe::cuda
