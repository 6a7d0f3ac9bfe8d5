#include "run/hosts.h"

#include <algorithm>
#include <vector>

#include "compile/machines.h"
#include "compile/target.h"
#include "exec/describe.h"

namespace harpe {

Checked<FittedPlan> plan_for_hosts(Session& session, const Request& request,
                                   const processes::Launch& launch) {
  const int hosts = launch.hosts();
  std::int64_t ranks = 0;
  if (kind_of(request.target) == TargetKind::PlanFile) {
    HP_TRY(const Plan plan, session.plan(request));
    ranks = plan.mesh.ranks();
  } else {
    HP_TRY(const Mesh mesh, session.mesh(request));
    ranks = mesh.ranks();
  }
  if (ranks % hosts != 0) {
    return make_diag(DiagCode::N016,
                     {{"variable", launch.local_ranks_by},
                      {"reason", "makes " + std::to_string(hosts) + " hosts, among which " +
                                     std::to_string(ranks) + " ranks cannot be divided evenly"}});
  }
  Request there = request;
  there.runs_on = machine_of_hosts(hosts, ranks / hosts);
  return plan_for(session, there, *there.runs_on);
}

std::int64_t count_hosts(const Machine& machine, std::int64_t ranks) {
  const std::int64_t each = machine.levels.front().size;
  return (ranks + each - 1) / each;
}

std::optional<std::string> find_gpu_obstacle(std::int64_t hosts) {
  if (hosts == 1) return std::nullopt;
  return "the ranks are on " + std::to_string(hosts) +
         " hosts, and GPUs run those of one host alone";
}

HostTraffic traffic_between(const Plan& plan, int hosts) {
  const std::int64_t each = plan.mesh.ranks() / hosts;
  std::vector<std::int64_t> sent(static_cast<std::size_t>(plan.mesh.ranks()));
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    const Task& task = plan.tasks[i];
    if (!is_put(plan, task) || task.writes.empty()) continue;
    const RankId from = rank_of(plan, TaskId(static_cast<std::int64_t>(i)));
    if (from.value / each != destination_of(plan, task).value / each)
      sent[from.index()] += task.bytes;
  }
  HostTraffic traffic;
  for (const std::int64_t bytes : sent) {
    traffic.bytes += bytes;
    traffic.busiest_rank = std::max(traffic.busiest_rank, bytes);
  }
  return traffic;
}

}  // namespace harpe
