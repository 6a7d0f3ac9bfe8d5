#pragma once

#include <string>
#include <vector>

#include "driver/session.h"

namespace harpe {

// The plan of a command line: "gemm m=8 …", mesh, schedule; everything on the way read back and
// compared.
inline Plan make_plan(const std::string& op, const std::vector<std::string>& parameters,
                      const std::string& mesh, const std::string& schedule) {
  Session session(true);
  Checked<Plan> plan =
      session.plan({.target = op, .parameters = parameters, .mesh = mesh, .schedule = schedule});
  HP_CHECK(plan.ok(), render(plan.error()));
  return std::move(plan).value();
}

}  // namespace harpe
