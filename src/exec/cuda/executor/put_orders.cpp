#include "exec/cuda/executor/put_orders.h"

#include <algorithm>

#include "exec/cuda/executor/nodes.h"

namespace harpe::cuda {
namespace {

std::map<TaskId, Fence> fences_of(const Plan& plan) {
  std::map<TaskId, Fence> fences;
  for (const Sync& sync : plan.syncs) {
    if (!sync.fence) continue;
    const auto [known, is_new] = fences.emplace(sync.from, *sync.fence);
    if (!is_new) known->second = std::min(known->second, *sync.fence);
  }
  return fences;
}

}  // namespace

std::map<TaskId, processes::PutOrder> order_puts(const Plan& plan) {
  return processes::order_puts(plan, puts_of(plan), fences_of(plan));
}

}  // namespace harpe::cuda
