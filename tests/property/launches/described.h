#pragma once

#include <string>
#include <vector>

#include "compile/request.h"
#include "exec/described_target.h"
#include "plan/launch_plan.h"
#include "plan/plan.h"

namespace harpe::test {

struct Described {
  Plan plan;
  launch::LaunchPlan launches;
};

// An operator's launch plan for H200s under a named schedule. Requires: all of these exist.
[[nodiscard]] Described describe(const std::string& op, const std::vector<std::string>& parameters,
                                 const std::string& mesh, const std::string& schedule,
                                 const cuda::DescribedTarget& target = {});
[[nodiscard]] Described describe(const Request& request, const cuda::DescribedTarget& target = {});

// The full text of the finding, or "verified".
[[nodiscard]] std::string finding(const Described& described);

}  // namespace harpe::test
