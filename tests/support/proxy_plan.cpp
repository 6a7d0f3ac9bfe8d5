#include "tests/support/proxy_plan.h"

#include <fstream>
#include <sstream>

#include "exec/describe.h"
#include "plan/text.h"

namespace harpe::test {

Plan by_proxy(Plan plan, Fence fence) {
  for (Queue& queue : plan.queues) {
    if (queue.kind == QueueKind::Ce) queue.kind = QueueKind::Proxy;
  }
  for (Task& task : plan.tasks) {
    if (task.kind == TaskKind::Copy && task.via == Via::Ce) task.via = Via::Proxy;
  }
  for (Sync& sync : plan.syncs) {
    const bool is_word = rank_of(plan, sync.from) != rank_of(plan, sync.to);
    if (is_word && is_put(plan, plan.tasks[sync.from.index()])) sync.fence = fence;
  }
  return plan;
}

Plan push_plan() {
  std::ifstream file(HARPE_SOURCE_DIR "/tests/unit/cuda/push.plan");
  std::stringstream text;
  text << file.rdbuf();
  return parse_plan(text.str(), "push.plan").value();
}

}  // namespace harpe::test
