#include "tests/property/launches/described.h"

#include "compile/launches.h"
#include "compile/session.h"
#include "support/check.h"
#include "verify/verify_launches.h"

namespace harpe::test {

Described describe(const std::string& op, const std::vector<std::string>& parameters,
                   const std::string& mesh, const std::string& schedule) {
  Request request;
  request.target = op;
  request.parameters = parameters;
  request.mesh = mesh;
  request.schedule = schedule;
  return describe(request);
}

Described describe(const Request& request) {
  Session session(false);
  Checked<Plan> plan = session.plan(request);
  HP_CHECK(plan.ok(), render(plan.error()));
  Checked<launch::LaunchPlan> launches = make_gpu_launches(*plan);
  HP_CHECK(launches.ok(), render(launches.error()));
  return {.plan = std::move(plan).value(), .launches = std::move(launches).value()};
}

std::string finding(const Described& described) {
  const auto result = verify_launches(described.plan, described.launches);
  return result.ok() ? "verified" : render(result.error());
}

}  // namespace harpe::test
