#pragma once

#include <optional>
#include <string>

#include "ir/form.h"
#include "ir/program.h"
#include "machine/mesh.h"
#include "plan/plan.h"
#include "support/diag.h"
#include "verify/launch_certificate.h"
#include "verify/verify.h"

namespace harpe {

// The text of what H200s launch for a plan, a rank to a GPU. Requires: a verified plan.
// `paranoid`: it is read back and compared, as by Session.
// Errors: G001 a build without the CUDA back end; what GPUs cannot do (describe_launches).
[[nodiscard]] Checked<std::string> show_launches(const Plan& plan, bool paranoid);

// Proves the launches in a file, as show_launches prints them, or what H200s launch where none is
// named. Requires: a verified plan. Errors: I101 and parse_launches' of a file, else
// show_launches'; verify_launches'.
[[nodiscard]] Checked<LaunchCertificate> certify_launches(const Plan& plan,
                                                          const std::optional<std::string>& path,
                                                          const VerifyOptions& options);

// Proves what H200s launch for the likenesses of a schedule (verify/reduced.h), and their plans.
// Errors: certify_launches' and verify's, with a note that names the mesh.
[[nodiscard]] Checked<LaunchCertificate> certify_small_launches(const Program& program,
                                                                const Mesh& mesh,
                                                                const NormalForm& form,
                                                                const VerifyOptions& options);

}  // namespace harpe
