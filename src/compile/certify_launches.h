#pragma once

#include <string>

#include "compile/launches.h"
#include "ir/form.h"
#include "ir/program.h"
#include "machine/mesh.h"
#include "plan/launch_plan.h"
#include "plan/plan.h"
#include "support/diag.h"
#include "verify/launch_certificate.h"
#include "verify/verify.h"

namespace harpe {

// Reads the launches in a file, as show_launches prints them. Errors: I101; parse_launches'.
[[nodiscard]] Checked<launch::LaunchPlan> read_launches(const std::string& path, const Plan& plan);

// Proves the plans of a schedule's likenesses (verify/reduced.h), and their launch plans for H200s.
// Errors: make_gpu_launches', verify_launches' and verify's, with a note that names the mesh.
[[nodiscard]] Checked<LaunchCertificate> certify_small_launches(const Program& program,
                                                                const Mesh& mesh,
                                                                const NormalForm& form,
                                                                const VerifyOptions& options);

// Proves launches before they run. Requires: a verified plan. Errors: verify_launches'.
[[nodiscard]] Checked<Ok> prove(const Plan& plan, const launch::LaunchPlan& launches);

// The same, except for launches with puts through NICs, which are beyond the proof (V202).
// Requires: a verified plan. Errors: verify_launches', but V202.
[[nodiscard]] Checked<Ok> prove_if_modelled(const Plan& plan, const launch::LaunchPlan& launches);

}  // namespace harpe
