#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "compile/simulation.h"
#include "exec/processes/launch_environment.h"
#include "plan/plan.h"

namespace harpe {

// The request's plan for CPU ranks on the hosts of a launch, equally many on each: what crosses
// hosts goes by proxy. Errors: plan_for's; N016 where the ranks do not share out.
[[nodiscard]] Checked<FittedPlan> plan_for_hosts(Session& session, const Request& request,
                                                 const processes::Launch& launch);

// On how many hosts so many ranks are: the innermost level of a machine is one.
// Requires: ranks <= machine.processors().
[[nodiscard]] std::int64_t count_hosts(const Machine& machine, std::int64_t ranks);
// Why GPUs of so many hosts run no plan; none of one. The rule of make_executor.
[[nodiscard]] std::optional<std::string> find_gpu_obstacle(std::int64_t hosts);

// What one execution of a plan sends between hosts.
struct HostTraffic {
  std::int64_t bytes = 0;
  std::int64_t busiest_rank = 0;  // of what leaves the rank that sends most
};
// Requires: the hosts' number divides the ranks'.
[[nodiscard]] HostTraffic traffic_between(const Plan& plan, int hosts);

}  // namespace harpe
