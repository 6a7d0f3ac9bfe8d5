#include "tests/property/launches/described.h"

#include "compile/session.h"
#include "exec/cuda/target/launch_target.h"
#include "launch/make_launches.h"
#include "support/check.h"
#include "verify/verify_launches.h"

namespace harpe::test {

Described describe(const std::string& op, const std::vector<std::string>& parameters,
                   const std::string& mesh, const std::string& schedule,
                   const cuda::DescribedTarget& target) {
  Request request;
  request.target = op;
  request.parameters = parameters;
  request.mesh = mesh;
  request.schedule = schedule;
  return describe(request, target);
}

Described describe(const Request& request, const cuda::DescribedTarget& target) {
  Session session(false);
  Checked<Plan> plan = session.plan(request);
  HP_CHECK(plan.ok(), render(plan.error()));
  const auto blocks = Blocks::make(plan->program, plan->mesh, plan->form);
  Checked<launch::LaunchPlan> launches =
      launch::make_launches(*plan, *blocks, cuda::LaunchTarget(target));
  HP_CHECK(launches.ok(), render(launches.error()));
  return {.plan = std::move(plan).value(), .launches = std::move(launches).value()};
}

std::string finding(const Described& described) {
  const auto result = verify_launches(described.plan, described.launches);
  return result.ok() ? "verified" : render(result.error());
}

}  // namespace harpe::test
