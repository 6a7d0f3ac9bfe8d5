#pragma once

#include "plan/launch_plan.h"
#include "plan/plan.h"
#include "support/diag.h"
#include "verify/launch_certificate.h"
#include "verify/verify.h"

namespace harpe {

// Proves the launch plan against the plan's program, or reports the first finding. Shares no code
// with the passes that make launch plans. Requires: a verified plan.
// Errors: V202 puts through NICs; V7xx statements of launches; V301 a cycle of waits, V4xx races,
// V5xx data, all about steps of launches; I505 the time limit expired.
[[nodiscard]] Checked<LaunchCertificate> verify_launches(const Plan& plan,
                                                         const launch::LaunchPlan& launches,
                                                         const VerifyOptions& options = {});

}  // namespace harpe
