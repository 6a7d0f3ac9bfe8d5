#pragma once

#include <cstdint>

#include "driver/simulation.h"
#include "exec/processes/launch_environment.h"
#include "plan/plan.h"

namespace harpe {

// The request's plan for CPU ranks on the hosts of a launch, equally many on each: what crosses
// hosts goes by proxy. Errors: plan_for's; N016 where the ranks do not share out.
[[nodiscard]] Checked<FittedPlan> plan_for_hosts(Session& session, const Request& request,
                                                 const processes::Launch& launch);

// What one execution of a plan sends between hosts.
struct HostTraffic {
  std::int64_t bytes = 0;
  std::int64_t busiest_rank = 0;  // of what leaves the rank that sends most
};
// Requires: the hosts' number divides the ranks'.
[[nodiscard]] HostTraffic traffic_between(const Plan& plan, int hosts);

}  // namespace harpe
