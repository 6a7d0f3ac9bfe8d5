#include "compile/certify_launches.h"

#include <utility>

#include "compile/summary.h"
#include "lower/lower.h"
#include "plan/launch_text.h"
#include "support/whole_file.h"
#include "verify/reduced.h"
#include "verify/verify_launches.h"

namespace harpe {
namespace {

Checked<LaunchCertificate> certify_case(const ReducedCase& small, const VerifyOptions& options) {
  LowerOptions lowering;
  lowering.limit = options.limit;
  HP_TRY(const Plan plan, lower(small.program, small.mesh, small.form, lowering));
  HP_REQUIRE_OK(verify(plan, options));
  HP_TRY(const launch::LaunchPlan launches, make_gpu_launches(plan));
  return verify_launches(plan, launches, options);
}

}  // namespace

Checked<launch::LaunchPlan> read_launches(const std::string& path, const Plan& plan) {
  HP_TRY(const std::string text, read_whole(path));
  HP_TRY(const Blocks blocks, Blocks::make(plan.program, plan.mesh, plan.form));
  return launch::parse_launches(text, path, plan, blocks);
}

Checked<LaunchCertificate> certify_small_launches(const Program& program, const Mesh& mesh,
                                                  const NormalForm& form,
                                                  const VerifyOptions& options) {
  HP_TRY(const std::vector<ReducedCase> cases, reduced_cases(program, mesh, form));
  VerifyOptions of_case = options;
  of_case.memory_limit_bytes.reset();
  LaunchCertificate all;
  for (const ReducedCase& small : cases) {
    Checked<LaunchCertificate> one = certify_case(small, of_case);
    if (!one.ok()) {
      return with_note(std::move(one).error(), "in the reduced likeness of this schedule on `" +
                                                   print_mesh_option(small.mesh) + "`");
    }
    all.launches += one->launches;
    all.steps += one->steps;
    all.signals += one->signals;
    all.blocks_checked += one->blocks_checked;
  }
  return all;
}

Checked<Ok> prove(const Plan& plan, const launch::LaunchPlan& launches) {
  HP_REQUIRE_OK(verify_launches(plan, launches));
  return Ok{};
}

Checked<Ok> prove_if_modelled(const Plan& plan, const launch::LaunchPlan& launches) {
  const Checked<Ok> proved = prove(plan, launches);
  if (proved.ok() || proved.error().code == DiagCode::V202) return Ok{};
  return proved;
}

}  // namespace harpe
