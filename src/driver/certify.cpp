#include "driver/certify.h"

#include "ir/text.h"
#include "lower/lower.h"
#include "verify/model.h"
#include "verify/order.h"
#include "verify/reduced.h"
#include "verify/resolved.h"
#include "verify/structure.h"

namespace harpe {
namespace {

// What can be said of all ranks without executing their blocks.
Checked<Ok> check_full_size(const Plan& plan, const VerifyOptions& options) {
  HP_TRY(const verifier::Model model, verifier::Model::make(plan.program, plan.mesh, plan.form));
  HP_REQUIRE_OK(verifier::check_ids(plan, model));
  HP_TRY(const verifier::Resolved resolved, verifier::Resolved::make(plan, model));
  HP_REQUIRE_OK(verifier::check_tasks(plan, model, resolved));
  HP_REQUIRE_OK(verifier::check_groups(plan, model));
  HP_REQUIRE_OK(verifier::check_signals(plan, model));
  HP_REQUIRE_OK(verifier::check_memory(plan, model, resolved, options.memory_limit_bytes));
  HP_REQUIRE_OK(verifier::Order::make(plan, model));
  return Ok{};
}

Checked<Certificate> certify_case(const ReducedCase& small) {
  HP_TRY(const Plan plan, lower(small.program, small.mesh, small.form));
  return verify(plan);
}

Checked<Certificate> certify_reduced(const Plan& plan, const VerifyOptions& options) {
  HP_REQUIRE_OK(check_full_size(plan, options));
  HP_TRY(const std::vector<ReducedCase> cases, reduced_cases(plan.program, plan.mesh, plan.form));
  Certificate out{
      .level = VerifyLevel::Reduced,
      .tasks = static_cast<std::int64_t>(plan.tasks.size()),
      .happens_before_edges = static_cast<std::int64_t>(plan.syncs.size() + plan.barriers.size()),
      .blocks_checked = 0,
      .peak_bytes = arena_bytes(plan)};
  for (const ReducedCase& small : cases) {
    Checked<Certificate> certificate = certify_case(small);
    if (!certificate.ok()) {
      std::string mesh = print(small.mesh);
      mesh.pop_back();
      return with_note(std::move(certificate).error(),
                       "in the reduced likeness of this schedule on `" + mesh + "`");
    }
    out.blocks_checked += certificate->blocks_checked;
  }
  return out;
}

}  // namespace

VerifyLevel level_for(const Plan& plan) {
  const bool is_small =
      plan.mesh.ranks() <= kFullRanks || static_cast<std::int64_t>(plan.tasks.size()) <= kFullTasks;
  return is_small ? VerifyLevel::Full : VerifyLevel::Reduced;
}

Checked<Certificate> certify(const Plan& plan, VerifyLevel level, const VerifyOptions& options) {
  return level == VerifyLevel::Full ? verify(plan, options) : certify_reduced(plan, options);
}

}  // namespace harpe
