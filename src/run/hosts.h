#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "compile/simulation.h"
#include "exec/processes/launch_environment.h"
#include "plan/plan.h"

namespace harpe {

// The request's plan for CPU ranks on the hosts of a launch, equally many on each: moves between
// hosts go by proxy. Errors: those of plan_for; N016 the ranks do not divide evenly.
[[nodiscard]] Checked<FittedPlan> plan_for_hosts(Session& session, const Request& request,
                                                 const processes::Launch& launch);

// The number of hosts for `ranks` ranks: the innermost level of a machine is one host. Requires:
// ranks <= machine.processors().
[[nodiscard]] std::int64_t count_hosts(const Machine& machine, std::int64_t ranks);
// Why GPUs of so many hosts cannot run a plan; none for one host. The rule of make_executor.
[[nodiscard]] std::optional<std::string> find_gpu_obstacle(std::int64_t hosts);

// The bytes that one execution of a plan sends between hosts.
struct HostTraffic {
  std::int64_t bytes = 0;
  std::int64_t busiest_rank = 0;  // bytes that leave the rank which sends most
};
// Requires: the number of hosts divides the number of ranks.
[[nodiscard]] HostTraffic traffic_between(const Plan& plan, int hosts);

}  // namespace harpe
